"""How kernels are compiled that make no arrays.

They count no references to the arrays that they are handed: numba counts them
anew for every bundle that is taken apart, which costs a score of one column
fifty times what the score itself does. Kernels that make arrays use njit.
"""

from typing import Final

from numba import njit

bare: Final = njit(cache=True, nogil=True, _nrt=False)
inlined: Final = njit(cache=True, nogil=True, _nrt=False, forceinline=True)
