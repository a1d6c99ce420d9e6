"""One end of a DDS network with Unitree's topics. Cyclone DDS does the work, and is imported only here and when needed.

`dds://INTERFACE` names the network interface that the robot is on, `dds://INTERFACE?domain=1` another domain than the
robot's 0. Readers keep the newest sample only and never ask for a lost one again, so that nothing queues. Only
ends with a private name, for simulated time, hear everything and nobody else.
"""

import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ncap.deploy.messages import MalformedMessage
from ncap.errors import UserError, unknown_name
from ncap.extras import missing_extra

if TYPE_CHECKING:
    from cyclonedds.domain import Domain

LARGEST_DOMAIN: Final = 230
"""Ports of higher domains do not exist."""
BLOCKING: Final = 0.01
"""Longest time that writing a sample may take, s."""
PATIENCE: Final = 5.0
"""The same where every sample must arrive, s."""
_ADDRESS: Final = re.compile(r"dds://(?P<interface>[^:?/&]{1,60})(\?domain=(?P<domain>[0-9]{1,4}))?", re.ASCII)
_HEARD: Final = 16
"""Samples of a topic that are taken at a time: the newest one, and notices that writers have left."""
_CONFIGURATION: Final = """<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface name="{interface}" multicast="{multicast}"/></Interfaces>
<AllowMulticast>{multicast}</AllowMulticast></General></Domain></CycloneDDS>"""


class DdsAddress(NamedTuple):
    """Where a DDS network is."""

    interface: str
    """Name of a network interface of this computer, such as eth0; lo stays on this host."""
    domain: int = 0
    """A robot's domain is 0; unitree_mujoco's is 1 by convention."""

    @property
    def url(self) -> str:
        """The address as one word."""
        return f"dds://{self.interface}?domain={self.domain}"


def find_dds_address(link: str) -> DdsAddress:
    """The address in dds://INTERFACE or dds://INTERFACE?domain=N, if this computer has that interface."""
    match = _ADDRESS.fullmatch(link)
    if match is None:
        raise UserError(f"unknown link {link[:60]!r}; valid: dds://INTERFACE, dds://INTERFACE?domain=N")
    interface, domain = match["interface"], int(match["domain"] or 0)
    known = [name for _, name in socket.if_nameindex()]
    if interface not in known:
        raise unknown_name("network interface", interface, known)
    if domain > LARGEST_DOMAIN:
        raise UserError(f"a DDS domain is 0 to {LARGEST_DOMAIN}, not {domain}")
    return DdsAddress(interface, domain)


class Sample(NamedTuple):
    """A sample of a topic."""

    data: bytes
    """CDR, with its header."""
    written: int
    """Time at which its writer wrote it, by the writer's clock, ns since 1970."""


class DdsEnd:
    """One end of a DDS network: calls functions for samples of topics, and waits by the clock.

    It hears what others write, not what it wrote itself. A function may raise MalformedMessage.
    """

    def __init__(self, url: str, private: str = "") -> None:
        """private: a name that other ends must have, too, to hear this one. Among them every sample arrives, in order.

        That is for simulated time: readers keep all samples, and ask for lost ones again.
        """
        self.address = find_dds_address(url)
        self._private = private
        self.malformed = 0
        """Samples that were dropped because they could not be understood."""
        self._writers: dict[str, Any] = {}
        self._readers: list[tuple[str, Any, Callable[[Sample], None]]] = []
        self._types = _import_types()
        from cyclonedds.core import DDSException, Policy, Qos, WaitSet
        from cyclonedds.domain import DomainParticipant
        from cyclonedds.pub import Publisher
        from cyclonedds.sub import Subscriber

        self._failure = DDSException
        try:
            with _OPENING:
                self._domain = _open_domain(self.address)
            self._participant = DomainParticipant(self.address.domain)
            group = Qos(Policy.Partition([private])) if private else Qos()
            self._publisher, self._subscriber = (kind(self._participant, group) for kind in (Publisher, Subscriber))
            self._waiting = WaitSet(self._participant)
        except DDSException as error:
            raise UserError(f"cannot open DDS at {url}: {error}") from None

    def hear(self, topic: str, call: Callable[[Sample], None]) -> None:
        """Call a function for every sample of a topic that others write."""
        from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState
        from cyclonedds.sub import DataReader
        from cyclonedds.util import duration

        usual = (Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
        whole = (Policy.Reliability.Reliable(duration(seconds=PATIENCE)), Policy.History.KeepAll)
        quality = Qos(*(whole if self._private else usual), Policy.IgnoreLocal.Participant)
        reader = DataReader(self._subscriber, self._topic(topic), quality)
        news = ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Any)
        self._waiting.attach(news)
        self._readers.append((topic, reader, call))

    def announce(self, topic: str) -> None:
        """Make a topic known that will be written, so that its readers are found before the first sample."""
        from cyclonedds.core import Policy, Qos
        from cyclonedds.pub import DataWriter
        from cyclonedds.util import duration

        blocking, history = BLOCKING, Policy.History.KeepLast(1)
        if self._private:
            blocking, history = PATIENCE, Policy.History.KeepAll
        quality = Qos(Policy.Reliability.Reliable(duration(seconds=blocking)), history)
        self._writers[topic] = DataWriter(self._publisher, self._topic(topic), quality)

    def met(self, topics: Sequence[str]) -> bool:
        """Whether topics that are written have found a reader, and those that are only heard a writer."""
        readers = {topic: reader for topic, reader, _ in self._readers}
        return all(
            self._writers[topic].get_matched_subscriptions()
            if topic in self._writers
            else readers[topic].get_matched_publications()
            for topic in topics
        )

    def _topic(self, name: str) -> Any:
        from cyclonedds.topic import Topic

        return Topic(self._participant, name, self._types[name])

    def wait_until(self, moment: float) -> None:
        """Handle samples until a moment of time.monotonic, s, including those that have come by then."""
        while True:
            left = moment - time.monotonic()
            self.wait_for_some(moment)
            if left <= 0.0:
                return

    def wait_for_some(self, moment: float) -> None:
        """Handle the next samples, if some come before a moment of time.monotonic, s."""
        try:
            left = max(0, round(1e9 * (moment - time.monotonic())))
            if left and not self._waiting.wait(left):
                return
            for _, reader, call in self._readers:
                for sample in reader.take(_HEARD):
                    if sample.sample_info.valid_data:
                        self._handle(Sample(sample.cdr, sample.sample_info.source_timestamp), call)
        except self._failure as error:
            raise OSError(f"DDS at {self.address.url}: {error.msg}") from None

    def _handle(self, sample: Sample, call: Callable[[Sample], None]) -> None:
        try:
            call(sample)
        except MalformedMessage:
            self.malformed += 1

    def publish(self, topic: str, data: bytes) -> None:
        """Write a sample of a topic that was announced: CDR, with its header."""
        try:
            self._writers[topic].write(self._types[topic](data))
        except self._failure as error:
            raise OSError(f"DDS at {self.address.url}: {error.msg}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the network."""
        self._readers.clear()
        self._writers.clear()
        self._waiting = self._publisher = self._subscriber = self._participant = None


def check_installed() -> None:
    """Say by a UserError that Cyclone DDS is missing, before something long begins."""
    _import_types()


def _import_types() -> dict[str, Any]:
    """Types of the topics by name; a UserError where Cyclone DDS is not installed."""
    try:
        import cyclonedds  # noqa: F401
    except ImportError:
        raise missing_extra("a dds:// link", "go2") from None
    from ncap.deploy.dds_types import TYPES

    return TYPES


_DOMAINS: Final[dict[int, tuple[str, "Domain"]]] = {}
"""Interface and handle of every domain that this process is in. Cyclone DDS configures a domain once in a process."""
_OPENING: Final = threading.Lock()
"""Held while a domain is opened: two threads may want the same one."""


def _open_domain(address: DdsAddress) -> "Domain":
    """The domain of an address, on its interface alone. The loopback interface has no multicast."""
    from cyclonedds.domain import Domain

    interface, domain = _DOMAINS.get(address.domain, (address.interface, None))
    if interface != address.interface:
        raise UserError(f"this process already is in DDS domain {address.domain} on {interface}")
    if domain is None:
        local = address.interface.startswith("lo")
        text = _CONFIGURATION.format(interface=address.interface, multicast="false" if local else "default")
        domain = Domain(address.domain, text)
        _DOMAINS[address.domain] = address.interface, domain
    return domain
