"""Kernels of OpenBLAS, by the widest vectors that they use (lower case)."""

AVX512_CORES = frozenset({"skylakex", "cooperlake", "sapphirerapids"})
AVX2_CORES = frozenset({"haswell", "zen", "excavator"})
OTHER_CORES = frozenset({"sandybridge", "nehalem", "prescott", "core2", "penryn", "generic"})
