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
import weakref

from _stoker_recorder import Recorder, Watch, WatchedIterator, counter_for, now

_recorder = None


def install(directory):
    global _recorder
    if _recorder is None:
        _recorder = Recorder(directory)
        sys.meta_path.insert(0, _Finder())


def _say(error):
    """For whoever looks for a fault; others only train."""
    if os.environ.get("STOKER_DEBUG"):
        sys.stderr.write(f"stoker: something is not watched: {error!r}\n")


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
            _say(error)


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
    """Loaders that were begun, by what they are called: one that is made anew for each epoch is still the same."""

    def __init__(self):
        self._kinds = {}

    def watch(self, loader, name, batch_size=None):
        """For another iterator over this loader: its next epoch."""
        entries = self._kinds.setdefault((name, batch_size, _grad_enabled()), [])
        for entry in entries:
            if entry[2]() is loader or entry[2]() is None:
                break
        else:
            entry = [_recorder.add_loader(name, batch_size, _grad_enabled()), 0, None]
            entries.append(entry)
        entry[2] = weakref.ref(loader)
        watch = Watch(_recorder, entry[0])
        watch.epoch = entry[1]
        entry[1] += 1
        return watch


_known = _Known()


def _watch_next(cls, size_of):
    """Changes cls.__next__ for iterators that have been given a watch; size_of(iterator) is what their batches should have."""
    original = cls.__next__

    @functools.wraps(original)
    def __next__(self):
        watch = self.__dict__.get("_stoker_watch")
        if watch is None:
            return original(self)
        watch.ask()
        try:
            batch = original(self)
        except StopIteration:
            watch.end()
            raise
        count = self.__dict__.get("_stoker_count")
        if count is None:
            count = self.__dict__["_stoker_count"] = counter_for(batch, size_of(self))
        watch.got(_safely(count, batch))
        return batch

    cls.__next__ = __next__


def _safely(count, batch):
    try:
        return count(batch)
    except Exception:
        return 0


def _grad_enabled():
    torch = sys.modules.get("torch")
    try:
        return bool(torch.is_grad_enabled())
    except Exception:
        return True


def _torch_data(module):
    original = module.DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self):
        iterator = original(self)
        try:
            # A worker that loads with a loader of its own does not train.
            if sys.modules["torch"].utils.data.get_worker_info() is None:
                before = iterator.__dict__.get("_stoker_watch")
                if before is not None:  # persistent workers: the same iterator again
                    before.dropped()
                workers = self.num_workers
                shown = "no workers" if not workers else "1 worker" if workers == 1 else f"{workers} workers"
                name = f"DataLoader({type(self.dataset).__name__}, {shown})"
                iterator.__dict__["_stoker_size"] = self.batch_size
                iterator.__dict__["_stoker_watch"] = _known.watch(self, name, self.batch_size)
        except Exception as error:
            _say(error)
        return iterator

    module.DataLoader.__iter__ = __iter__
    _watch_next(module._BaseDataLoaderIter, lambda iterator: iterator.__dict__.get("_stoker_size"))


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
    original = module.OwnedIterator.__init__

    @functools.wraps(original)
    def __init__(self, dataset=None, *arguments, **named):
        original(self, dataset, *arguments, **named)
        try:
            if dataset is not None:
                self.__dict__["_stoker_watch"] = _known.watch(dataset, "tf.data")
        except Exception as error:
            _say(error)

    module.OwnedIterator.__init__ = __init__
    _watch_next(module.OwnedIterator, lambda iterator: None)


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
