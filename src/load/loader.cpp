// SPDX-License-Identifier: Apache-2.0
#include "load/loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/recorded_faults.h"
#include "load/epoch_run.h"
#include "load/image_field.h"

namespace stoker {
namespace {

constexpr unsigned kMostThreads = 1024;
/// Name under which a batch has the numbers of its samples.
constexpr std::string_view kSampleColumn = "sample";
/// Batches whose memory is kept for the next ones.
constexpr size_t kKeptBatches = 8;

void check(const LoaderOptions& options) {
  if (options.batch_size == 0) throw Error(ErrorKind::usage, "batch_size 0: should be 1 or more");
  if (options.ranks.world == 0 || options.ranks.rank >= options.ranks.world) {
    throw Error(ErrorKind::usage,
                fmt::format("rank {} of {}: should be 0 to {}", options.ranks.rank,
                            options.ranks.world, int64_t{options.ranks.world} - 1));
  }
  if (options.threads > kMostThreads) {
    throw Error(ErrorKind::usage,
                fmt::format("threads {}: {} are the most", options.threads, kMostThreads));
  }
}

/// No two columns may have one name.
void check_names(const std::vector<ColumnPlan>& columns) {
  std::set<std::string> names = {std::string(kSampleColumn)};
  for (const ColumnPlan& column : columns) {
    for (const std::string& name :
         {column.name, column.padding ? column.name + kLengthSuffix : ""}) {
      if (!name.empty() && !names.insert(name).second) {
        throw Error(ErrorKind::usage, fmt::format("a batch would have '{}' twice: fields= says "
                                                  "which ones are wanted",
                                                  printable(name)));
      }
    }
  }
}

/// Columns that need a value of every sample have none of a dataset that lacks the field. Lists may
/// have none of it where the user asked for the field.
void check_presence(const Sources& sources, const std::vector<ColumnPlan>& columns, bool asked) {
  for (const ColumnPlan& column : columns) {
    if (column.kind == ColumnPlan::Kind::values && asked) continue;
    for (uint32_t source = 0; source < sources.count(); ++source) {
      if (sources.field_in(source, column.field)) continue;
      std::vector<std::string> has;
      std::vector<std::string> shared;
      for (uint32_t field = 0; field < sources.fields().size(); ++field) {
        if (!sources.field_in(source, field)) continue;
        has.push_back(printable(sources.fields()[field].name));
      }
      for (const ColumnPlan& other : columns) {
        const auto has_it = [&](uint32_t each) { return sources.field_in(each, other.field); };
        uint32_t each = 0;
        while (each < sources.count() && has_it(each)) ++each;
        if (each == sources.count()) shared.push_back(fmt::format("\"{}\"", printable(other.name)));
      }
      throw Error(
          ErrorKind::usage,
          fmt::format("the datasets have different fields: {} has no '{}', only: {}; {}, or give "
                      "one of its fields that name with rename=",
                      printable(sources.path(source)), printable(column.name), fmt::join(has, ", "),
                      shared.empty() ? "load them one by one"
                                     : fmt::format("load what all of them have with fields=[{}]",
                                                   fmt::join(shared, ", "))));
    }
  }
}

std::vector<std::string> wanted_fields(const Sources& sources, const LoaderOptions& options) {
  if (!options.fields.empty()) return options.fields;
  std::vector<std::string> names;
  for (const Field& field : sources.fields()) names.push_back(field.name);
  if (!options.picture) return names;
  // Where photos are decoded, what is wanted besides them is their label.
  names = {options.image};
  if (sources.find(kLabelField)) names.emplace_back(kLabelField);
  return names;
}

/// A block shuffle counts samples, of which a block has as many as its bytes allow.
OrderOptions with_blocks(const LoaderOptions& options, const Sources& sources) {
  OrderOptions order = options.order;
  if (order.kind != OrderOptions::Kind::blocks) return order;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < sources.fields().size(); ++i) all.push_back(i);
  order.blocks.block = std::max<uint64_t>(1, options.block_bytes / sources.bytes_per_sample(all));
  order.blocks.window = std::max<uint64_t>(1, options.window_bytes / options.block_bytes);
  return order;
}

/// Size of the pictures, where the recipe leaves the photos': that of the first one.
Size size_of_first(const Sources& sources, uint32_t image) {
  const Sources::Place first = sources.place(0);
  const auto field = sources.field_in(first.source, image);
  if (!field) throw Error(ErrorKind::unsupported, "the first sample has no image");
  const Samples samples = read_many(sources.reader(first.source), {&first.sample, 1}, {&*field, 1});
  for (const auto& [number, value] : samples.rows.front()) {
    if (const auto* bytes = std::get_if<Bytes>(&value)) return ImageDecoder().open(*bytes).size;
    if (const auto* array = std::get_if<Array>(&value)) return raw_image_of(*array).size;
  }
  throw Error(ErrorKind::unsupported, "the first sample has no image");
}

void plan_pictures(const Sources& sources, uint32_t image, LoaderOptions& options,
                   std::vector<ColumnPlan>& columns) {
  PictureRecipe& recipe = *options.picture;
  recipe.size = recipe.geometry.size() ? *recipe.geometry.size() : size_of_first(sources, image);
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [&](const ColumnPlan& plan) { return plan.field == image; });
  if (column == columns.end()) return;
  column->kind = ColumnPlan::Kind::pictures;
  column->raw = sources.fields()[image].type == FieldType::array;
  column->element = recipe.element();
  column->shape = recipe.shape();
  column->row_bytes = std::accumulate(column->shape.begin(), column->shape.end(),
                                      element_size(column->element), std::multiplies<>());
}

/// What is missing of the data that are wanted, as the indexes say.
std::vector<Fault> missing_data(const std::vector<LoadSource>& sources,
                                const LoaderOptions& options) {
  std::vector<Fault> missing;
  for (const LoadSource& source : sources) {
    for (Fault& fault : recorded_faults(*source.index)) {
      const std::vector<std::string>& wanted = options.fields;
      std::string name = fault.field;
      for (const RenamedField& renamed : options.renamed) {
        if (renamed.from == fault.field) name = renamed.to;
      }
      // Formats leave out the whole sample where they must.
      const bool unwanted = !name.empty() && !wanted.empty() &&
                            std::find(wanted.begin(), wanted.end(), name) == wanted.end() &&
                            (fault.sample.empty() || source.index->find(fault.sample));
      if (loses_data(fault) && !unwanted) missing.push_back(std::move(fault));
    }
  }
  return missing;
}

[[noreturn]] void refuse_missing(const std::vector<LoadSource>& sources,
                                 const std::vector<Fault>& missing) {
  std::string text =
      fmt::format("{}: {}", printable(sources.front().roots.front()), missing.front().message());
  if (sources.size() > 1) text = missing.front().message();
  if (missing.size() > 1) text += fmt::format(" (and {} more)", missing.size() - 1);
  throw Error(ErrorKind::corrupt,
              text +
                  ": stoker check names all faults, stoker index looks again; on_error=\"skip\" "
                  "(stoker load --skip-bad) loads what is there");
}

}  // namespace

Loader::Parts::Parts(const std::vector<LoadSource>& given, LoaderOptions wanted)
    : options(std::move(wanted)),
      sources(given, options.renamed),
      order(sources.size(), with_blocks(options, sources)) {
  check(options);
  missing = missing_data(given, options);
  if (!missing.empty() && options.on_error == OnError::raise) refuse_missing(given, missing);
  // First, since it knows best what to say about a field that is not there.
  const uint32_t image = options.picture ? find_image(sources, options.image) : 0;
  columns = plan_columns(sources, wanted_fields(sources, options));
  if (options.picture) plan_pictures(sources, image, options, columns);
  check_presence(sources, columns, !options.fields.empty());
  for (const PaddedField& padded : options.padded) {
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const ColumnPlan& plan) {
      return plan.name == padded.name;
    });
    if (column == columns.end()) {
      throw Error(ErrorKind::usage, "pad: no field '" + printable(padded.name) + "' is loaded");
    }
    if (column->kind != ColumnPlan::Kind::values && column->kind != ColumnPlan::Kind::arrays) {
      throw Error(ErrorKind::usage, "pad: field '" + printable(padded.name) + "' is no array");
    }
    column->padding = padded.value;
  }
  check_names(columns);
  if (options.cache) {
    cache = std::make_unique<SampleCache>(options.cache->directory, options.cache->limit);
  }
  memory = std::make_shared<BatchMemory>(kKeptBatches * columns.size(), options.pinned);
  std::vector<uint32_t> fields;
  for (const ColumnPlan& column : columns) {
    fields.push_back(column.field);
    has_pictures |= column.kind == ColumnPlan::Kind::pictures;
  }
  bytes_per_sample = sources.bytes_per_sample(fields);
}

Loader::Loader(const std::vector<LoadSource>& sources, LoaderOptions options)
    : parts_(sources, std::move(options)), process_(::getpid()) {}

Loader::~Loader() {
  if (process_ != ::getpid()) leave_parents_run();
}

/// In a process that was forked: threads are gone, and locks may be held by them for ever.
void Loader::leave_parents_run() {
  new std::shared_ptr<EpochRun>(std::move(run_));              // never ended
  new std::shared_ptr<BatchMemory>(std::move(parts_.memory));  // never freed
  parts_.memory =
      std::make_shared<BatchMemory>(kKeptBatches * parts_.columns.size(), parts_.options.pinned);
  if (parts_.cache) {
    parts_.cache.release();
    parts_.cache =
        std::make_unique<SampleCache>(parts_.options.cache->directory, parts_.options.cache->limit);
  }
  new (&mutex_) std::mutex();
  process_ = ::getpid();
}

std::shared_ptr<EpochRun> Loader::run() const {
  if (process_ != ::getpid()) {
    throw Error(ErrorKind::usage,
                "this process was forked while an epoch was under way: begin a new iteration");
  }
  const std::lock_guard lock(mutex_);
  return run_;
}

uint64_t Loader::batches(uint64_t position) const {
  const LoaderOptions& options = parts_.options;
  const uint64_t rows =
      RankShare(parts_.order.size(), position, options.ranks, options.remainder).size();
  return options.drop_last ? rows / options.batch_size
                           : (rows + options.batch_size - 1) / options.batch_size;
}

void Loader::start(uint64_t epoch, uint64_t position) {
  if (position > parts_.order.size()) {
    throw Error(ErrorKind::usage, fmt::format("position {} of an epoch of {} samples", position,
                                              parts_.order.size()));
  }
  if (process_ != ::getpid()) leave_parents_run();
  const auto replace = [&](std::shared_ptr<EpochRun> by) {
    const std::lock_guard lock(mutex_);
    std::swap(run_, by);
    return by;
  };
  replace(nullptr).reset();  // two at a time would share the cores
  replace(std::make_shared<EpochRun>(parts_, epoch, position, batches(position)));
}

Loader::Next Loader::next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience) {
  const std::shared_ptr<EpochRun> now = run();
  return now ? now->next(batch, patience) : Next::end;
}

LoaderStats Loader::stats() const {
  const std::shared_ptr<EpochRun> now = run();
  return now ? now->stats() : LoaderStats{};
}

}  // namespace stoker
