"""The last module that the worker server imports: what it has loaded is kept from the collector.

A garbage collection writes to every object that it visits, and a rank that writes to memory shared
with the server gets a copy of it: all of torch's modules, in each rank. Frozen objects are not
visited. Only the name of this module is used elsewhere: a kernel that imported it would keep its
own garbage for good.
"""

import gc

gc.collect()
gc.freeze()
