"""The kernels of the parametric laws, one file each; importing this package registers them all."""

import pkgutil
from importlib import import_module

for module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
