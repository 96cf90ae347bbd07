#!/bin/sh
# What the loader does not find: missing_libraries.sh IMPLEMENTATION PACKAGES FOLDER ...
# It is asked about every ELF file in the folders; each library that it does not find is a line, with
# the file that needs it and the package that has it, by PACKAGES, a file of lines "LIBRARY PACKAGE".
# missing_libraries.sh --packages FOLDER ... prints those lines where everything is found.
set -eu

# Programs may be executed, and libraries are called so. libfabric's providers are left out: one that
# does not find the library of its fabric is not used.
elf_files() {
    find "$@" -xdev -type f '(' -perm /111 -o -name '*.so' -o -name '*.so.*' ')' \
        ! -path '*/libfabric/prov/*' | while read -r file; do
        if [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then echo "$file"; fi
    done
}

if [ "$1" = --packages ]; then
    shift
    elf_files "$@" | while read -r file; do
        # What is no dynamic program has no libraries.
        ldd "$file" 2>/dev/null || true
    done | sed -n 's/^[[:space:]]*\([^ /]*\) => \/\(lib\|usr\).*/\1/p' | sort -u |
        while read -r library; do
            package=$(dpkg -S "*/$library" 2>/dev/null | sed -n '1s/[:,].*//p')
            if [ -n "$package" ]; then echo "$library $package"; fi
        done
    exit
fi

implementation=$1 packages=$2
shift 2
missing=$(elf_files "$@" | while read -r file; do
    { ldd "$file" 2>&1 || true; } | sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p
        s/.*: version `\(.*\)'\'' not found .*/\1/p' | sort -u | while read -r library; do
        package=$(sed -n "s/^$library //p" "$packages")
        echo "missing library: $file does not find $library, which ${package:-no package of the build base} has"
    done
done)
if [ -n "$missing" ]; then
    echo "$missing"
    echo "missing library: add the package to packages.run of $implementation in" \
        "containers/implementations.yaml, and its version to containers/sources.lock"
    exit 1
fi
