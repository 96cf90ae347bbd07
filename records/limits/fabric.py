"""Which devices carried messages, by the kernel's counters, and whether these had to.

A preflight's ranks exchange a known volume, and every device of their hosts is looked at before and
after (benchmarks/preflight/fabric.h). The counters are the host's and see others' messages, too: a
device is said to have carried messages only if it carried at least half of the volume, both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from records.causes import one_line
from records.communication import DeviceBytes, Fabric

#: The least share of the volume that the devices must carry that a site names.
LEAST_SHARE = 0.9
#: The share from which on a device carried messages, whatever else it may have carried.
CARRIED_SHARE = 0.5
LOOPBACK = "lo"
#: How devices that bypass the kernel's network are named; those of TCP may be named anything.
BYPASSING = ("mlx", "hfi", "cxi", "efa", "rdmap", "bnxt_re", "irdma", "roce", "qedr", "opa", "rxe")
#: What helps where a device of RDMA was not taken, and where another one of TCP was.
BIND = (
    "bind the machine's own MPI, which has a provider for it (HOST_MPI=<prefix>), or pack it "
    "(docs/how-to/bring-your-own-mpi.md), and name variables that choose a device in `variables`"
)
CHOOSE = (
    "name a variable that chooses it in the site's `variables`: OMPI_MCA_btl_tcp_if_include, "
    "UCX_NET_DEVICES or FI_TCP_IFACE"
)
SHARE_MEMORY = (
    "look for a full /dev/shm, and for variables that leave shared memory out: OMPI_MCA_btl, "
    "UCX_TLS, FI_PROVIDER"
)


def _share(carried: int, volume: int) -> str:
    return f"{100 * carried / volume:.0f}%"


def _wanted(host: Fabric, names: Sequence[str]) -> list[DeviceBytes]:
    """Return the devices of some names: of one name, those that bypass the kernel before others."""
    found = []
    for name in names:
        alike = [one for one in host.devices if one.device == name]
        found += [one for one in alike if one.kind != "net"] or alike
    return found


def _others(
    host: Fabric, wanted: Sequence[str], volume: int, within: bool = False
) -> list[DeviceBytes]:
    """Return the devices that carried messages and are not wanted, the greatest first.

    What does not stay `within` a host does not pass its loopback device.
    """
    mine = _wanted(host, wanted)
    found = [
        one
        for one in host.devices
        if one.both_ways >= CARRIED_SHARE * volume
        and one not in mine
        # A bond, a bridge or a VLAN counts the bytes of what it lies on.
        and set(one.stacked).isdisjoint(wanted)
        and (within or one.device != LOOPBACK)
    ]
    return sorted(found, key=lambda one: -one.both_ways)


def wrong_fabric(hosts: Iterable[Fabric], fabric: str | list[str]) -> str | None:
    """Return what carried messages instead of what a site says must, with what helps; else None.

    `fabric` is a list of devices, or a word: that messages pass through memory and no device. Hosts
    that exchanged no messages of that kind are passed over; if no host did, that is the sentence.
    """
    wrong = _not_in_memory if isinstance(fabric, str) else _not_by
    volumes = [
        (host, host.within_bytes if isinstance(fabric, str) else host.between_bytes)
        for host in hosts
    ]
    if not any(volume for _, volume in volumes):
        return f"no messages were exchanged by which `fabric: {_named(fabric)}` could be proven"
    for host, volume in volumes:
        if volume and (said := wrong(host, volume, [*fabric])):
            what, helps = said
            return one_line(
                f"of the {volume / 1e6:.1f} MB that ranks on {host.host} exchanged, {what}, where "
                f"the site says `fabric: {_named(fabric)}`: {helps}"
            )
    return None


def _not_in_memory(host: Fabric, volume: int, _: Sequence[str]) -> tuple[str, str] | None:
    """Return the device that carried messages within a host, and what helps."""
    if host.cma_bytes >= LEAST_SHARE * volume:
        # It is proven; what else has passed meanwhile is somebody else's.
        return None
    for one in _others(host, [], volume, within=True):
        return f"{one.device} carried {_share(one.both_ways, volume)}", SHARE_MEMORY
    return None


def _not_by(host: Fabric, volume: int, wanted: Sequence[str]) -> tuple[str, str] | None:
    """Return which devices carried messages between hosts instead of those wanted; what helps."""
    mine = _wanted(host, wanted)
    bypasses = any(one.kind != "net" for one in mine) or any(
        name.startswith(BYPASSING) for name in wanted
    )
    if bypasses:
        # Network devices that are named beside one that bypasses the kernel prove nothing.
        mine = [one for one in mine if one.kind != "net"]
    carried = min(sum(one.sent_bytes for one in mine), sum(one.received_bytes for one in mine))
    others = _others(host, wanted, volume)
    # TCP over InfiniBand passes the device of the one and the port of the other.
    if carried >= LEAST_SHARE * volume and not (bypasses and others):
        return None
    first = (
        f"{others[0].device} carried {_share(others[0].both_ways, volume)}"
        if others
        else "no other device carried them"
    )
    what = f"{first} and {', '.join(wanted)} {_share(carried, volume)}"
    return what, BIND if bypasses else CHOOSE


def _named(fabric: str | list[str]) -> str:
    return fabric if isinstance(fabric, str) else f"[{', '.join(fabric)}]"


def passed_devices(hosts: Sequence[Fabric]) -> bool:
    """Return whether devices are known to have carried what hosts exchanged with others."""
    return bool(hosts) and all(_others(host, [], host.between_bytes) for host in hosts)


def carried_by(hosts: Sequence[Fabric]) -> str:
    """Return in words what carried the messages of hosts, of each kind of way once."""
    ways = dict.fromkeys(way for host in hosts for way in _of_host(host))
    return one_line("; ".join(ways))


def _of_host(host: Fabric) -> Iterable[str]:
    """Yield what carried a host's messages, in words that are alike for hosts that are."""
    if host.between_bytes:
        found = _others(host, [], host.between_bytes)
        yield " and ".join(one.device for one in found) or "between nodes no device that is counted"
    if host.within_bytes:
        if looped := _others(host, [], host.within_bytes, within=True):
            yield " and ".join(
                "loopback TCP" if one.device == LOOPBACK else f"{one.device} within a node"
                for one in looped
            )
        elif host.cma_bytes >= CARRIED_SHARE * host.within_bytes:
            yield "shared memory, long messages by CMA"
        elif host.xpmem_ranks:
            yield "shared memory, with XPMEM open"
        else:
            yield "shared memory"
