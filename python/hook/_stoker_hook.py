# SPDX-License-Identifier: Apache-2.0
"""Watches the data iterators of torch, TensorFlow, Keras and stoker from within an interpreter whose script nobody edited.

Plain Python without dependencies: runs in the user's own environment. Each framework is changed when it is imported, never
imported by this.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys

from _stoker_recorder import Recorder, Watch, WatchedIterator, count_samples, now

_recorder = None


def install(directory):
    global _recorder
    if _recorder is None:
        _recorder = Recorder(directory)
        sys.meta_path.insert(0, _Finder())


class _Loader(importlib.abc.Loader):
    """Another loader, and what to do when its module is there."""

    def __init__(self, loader, change):
        self._loader = loader
        self._change = change

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._change(module)
        except Exception as error:
            if os.environ.get("STOKER_DEBUG"):
                sys.stderr.write(f"stoker: {module.__name__} is not watched: {error!r}\n")


class _Finder(importlib.abc.MetaPathFinder):
    _looking = False

    def find_spec(self, name, path=None, target=None):
        change = CHANGES.get(name)
        if change is None or self._looking:
            return None
        self._looking = True
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _Loader(spec.loader, change)
                    return spec
        finally:
            self._looking = False
        return None


class _Known:
    """Loaders by what tells them apart, which is kept so that its id stays its own."""

    def __init__(self):
        self._loaders = {}

    def watch(self, key, name, batch_size=None, training=True):
        """For another iterator over this: its next epoch."""
        known = self._loaders.get(id(key))
        if known is None:
            known = self._loaders[id(key)] = [_recorder.add_loader(name, batch_size, training), 0, key]
        watch = Watch(_recorder, known[0])
        watch.epoch = known[1]
        known[1] += 1
        return watch


_known = _Known()


def _watch_method(cls, describe):
    """Changes cls.__next__: describe(iterator) gives (key, name, batch_size, training) once for each."""
    original = cls.__next__

    @functools.wraps(original)
    def __next__(self):
        watch = self.__dict__.get("_stoker_watch")
        if watch is None:
            watch = self.__dict__["_stoker_watch"] = _known.watch(*describe(self))
        watch.ask()
        try:
            batch = original(self)
        except StopIteration:
            watch.end()
            raise
        watch.got(count_samples(batch))
        return batch

    cls.__next__ = __next__


def _grad_enabled():
    torch = sys.modules.get("torch")
    try:
        return bool(torch.is_grad_enabled())
    except Exception:
        return True


def _torch_data(module):
    def describe(iterator):
        dataset = iterator._dataset
        sampler = getattr(iterator, "_index_sampler", None)
        batch_size = getattr(sampler, "batch_size", None)
        workers = getattr(iterator, "_num_workers", 0)
        shown = "no workers" if not workers else "1 worker" if workers == 1 else f"{workers} workers"
        name = f"DataLoader({type(dataset).__name__}, {shown})"
        return dataset, name, batch_size, _grad_enabled()

    _watch_method(module._BaseDataLoaderIter, describe)


def _torch_save(module):
    original = module.save

    @functools.wraps(original)
    def save(*arguments, **named):
        begin = now()
        try:
            return original(*arguments, **named)
        finally:
            _recorder.mark("checkpoint (torch.save)", begin, now())

    module.save = save


def _stoker_loader(module):
    original = module.Loader.__iter__

    @functools.wraps(original)
    def __iter__(self):
        watch = self.__dict__.get("_stoker_watch")
        if watch is None:
            number = _recorder.add_loader("stoker.Loader", training=_grad_enabled())
            watch = self.__dict__["_stoker_watch"] = Watch(_recorder, number)
        return WatchedIterator(original(self), watch)

    module.Loader.__iter__ = __iter__


def _tf_iterator(module):
    def describe(iterator):
        dataset = getattr(iterator, "_dataset", iterator)
        return dataset, "tf.data", None, True

    _watch_method(module.OwnedIterator, describe)


def _keras_callbacks(module):
    """Keras fetches its batches inside the compiled step: waiting cannot be told from it, so it is not claimed."""
    cls = module.CallbackList
    begin, end, epoch_end = cls.on_train_batch_begin, cls.on_train_batch_end, cls.on_epoch_end

    def watch_of(self):
        watch = self.__dict__.get("_stoker_watch")
        if watch is None:
            number = _recorder.add_loader("Keras fit", _keras_batch_size(self))
            _recorder.loaders[number]["waits"] = False
            watch = self.__dict__["_stoker_watch"] = Watch(_recorder, number)
        return watch

    @functools.wraps(begin)
    def on_train_batch_begin(self, batch, logs=None):
        watch = watch_of(self)
        watch.ask()
        watch.got(_recorder.loaders[watch.loader]["batch_size"] or 0)
        return begin(self, batch, logs)

    @functools.wraps(end)
    def on_train_batch_end(self, batch, logs=None):
        watch_of(self).dropped()
        return end(self, batch, logs)

    @functools.wraps(epoch_end)
    def on_epoch_end(self, epoch, logs=None):
        watch_of(self).epoch += 1
        return epoch_end(self, epoch, logs)

    cls.on_train_batch_begin = on_train_batch_begin
    cls.on_train_batch_end = on_train_batch_end
    cls.on_epoch_end = on_epoch_end


def _keras_batch_size(callbacks):
    """From the frame of fit(), which has made this list: Keras tells its callbacks nothing about it."""
    frame = sys._getframe(2)
    for _ in range(12):
        if frame is None:
            return None
        iterator = frame.f_locals.get("epoch_iterator")
        adapter = getattr(iterator, "data_adapter", None)
        size = getattr(adapter, "batch_size", None)
        if isinstance(size, int):
            return size
        frame = frame.f_back
    return None


# By the name of the module in which the class is made.
CHANGES = {
    "torch.utils.data.dataloader": _torch_data,
    "torch.serialization": _torch_save,
    "stoker._loader": _stoker_loader,
    "tensorflow.python.data.ops.iterator_ops": _tf_iterator,
    "keras.src.callbacks.callback_list": _keras_callbacks,
}
