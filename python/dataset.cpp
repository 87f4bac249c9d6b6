// SPDX-License-Identifier: Apache-2.0
#include "dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "convert.h"

namespace nb = nanobind;

namespace stoker::python {

std::vector<uint64_t> Range::part(uint64_t begin, uint64_t most) const {
  std::vector<uint64_t> samples(begin < count ? std::min(most, count - begin) : 0);
  for (uint64_t i = 0; i < samples.size(); ++i) samples[i] = (*this)[begin + i];
  return samples;
}

Dataset::Dataset(std::shared_ptr<const Index> index, DatasetPaths paths, bool verify,
                 std::optional<StagedRoot> staged)
    : index_(std::move(index)),
      paths_(std::move(paths)),
      staged_(std::move(staged)),
      reader_(index_, ReaderOptions{.roots = {paths_.root}, .staged = staged_, .verify = verify}) {
  for (const Field& field : index_->schema().fields) names_.push_back(to_str(field.name));
}

std::vector<uint32_t> Dataset::field_numbers(const std::vector<std::string>& names) const {
  std::vector<uint32_t> numbers;
  for (const std::string& name : names) {
    const std::optional<uint32_t> number = index_->schema().find(name);
    if (!number) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: no field '{}'", printable(paths_.path), printable(name)));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::unique_ptr<Fetched> Dataset::prepare(Batch batch) const {
  return std::make_unique<Fetched>(reader_, names_, std::move(batch));
}

// Locating one sample takes less time than taking the GIL back from a thread that got it meanwhile.
nb::dict Dataset::read(uint64_t sample) const {
  const std::unique_ptr<Fetched> fetched = prepare(reader_.locate({&sample, 1}));
  {
    const nb::gil_scoped_release without_gil;
    fetched->fetch();
  }
  return fetched->take(0);
}

nb::list Dataset::read_many(const std::vector<uint64_t>& samples,
                            const std::vector<std::string>& fields) const {
  Batch batch;
  {
    const nb::gil_scoped_release without_gil;
    batch = reader_.locate(samples, field_numbers(fields));
  }
  const std::unique_ptr<Fetched> fetched = prepare(std::move(batch));
  {
    const nb::gil_scoped_release without_gil;
    fetched->fetch();
  }
  nb::list list;
  for (size_t row = 0; row < fetched->rows(); ++row) list.append(fetched->take(row));
  return list;
}

}  // namespace stoker::python
