"""What asv follows over the commits: `make asv`.

Each benchmark draws its rows itself and uses nothing but the package, so that it runs on commits
older than itself. Methods are named as asv wants them: `time_` is timed, `track_` returns its
figure, `peakmem_` is the peak of a process.
"""
