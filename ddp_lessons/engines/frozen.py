"""The last module that the worker server imports: what a rank need not repeat for what it got.

A garbage collection writes to every object that it visits, and a rank that writes to memory shared
with the server gets a copy of it: all of torch's modules, in each rank. Frozen objects are not
visited. And at its end each rank would take down torch's operator libraries, one by one: their
finalizers are not called there. Only the name of this module is used elsewhere: a kernel that
imported it would keep its own garbage for good.
"""

import gc
import weakref

for finalizer in list(weakref.finalize._registry):
    finalizer.atexit = False
gc.collect()
gc.freeze()
