"""The messages in a worker's pipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import protocol
from firmware_bridge.protocol import (
    Ask,
    AskReply,
    Hello,
    OperationDone,
    OperationFailed,
    ProgressNote,
    ProtocolError,
    WorkerCall,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = (
    st.builds(
        WorkerCall, st.integers(0), st.text(), st.dictionaries(st.text(), PLAIN, max_size=3), st.booleans()
    )
    | st.builds(Hello, st.integers(0), st.booleans())
    | st.builds(ProgressNote, st.integers(0), st.text(), st.text())
    | st.builds(ProgressNote, st.integers(0), st.text(), st.text(), st.integers(0), st.integers(0))
    | st.builds(Ask, st.integers(0), st.integers(0), st.text())
    | st.builds(AskReply, st.integers(0), st.text() | st.none())
    | st.builds(OperationDone, st.integers(0), PLAIN)
    | st.builds(OperationFailed, st.integers(0), st.text(), st.text() | st.none())
)


@given(MESSAGES)
def test_a_message_arrives_as_it_was_sent(message):
    frame = protocol.encode(message)
    header, body = frame[: protocol.HEADER_SIZE], frame[protocol.HEADER_SIZE :]
    assert protocol.body_size(header) == len(body)
    assert protocol.decode(body) == message


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{}", b'{"type":"hello"}', b'{"type":"done","id":1,"value":2,"more":3}',
     b'{"type":["done"]}', b'{"type":"__import__"}', b"[" * 100_000],
)  # fmt: skip
def test_json_that_is_no_message_is_refused(body):
    with pytest.raises(ProtocolError):
        protocol.decode(body)


def test_s23_nothing_larger_than_the_limit_is_announced_or_sent():
    with pytest.raises(ProtocolError, match="over the limit"):
        protocol.body_size(b"\xff\xff\xff\xff")
    with pytest.raises(ProtocolError, match="over the limit"):
        protocol.encode(OperationDone(1, "a" * protocol.MAX_FRAME))


LONG = protocol.MAX_NESTED_FRAME


def test_a_long_text_passes():
    args = {"psbt": "A" * LONG, "policy": {"keys": ["key"] * 15}, "payments": 2}
    request = WorkerCall(1, "sign", args)
    assert protocol.decode(protocol.encode(request)[protocol.HEADER_SIZE :]) == request


@pytest.mark.parametrize("part", ["[],", "{},", "0,"])
def test_a_long_message_of_many_parts_is_refused_unread(part):
    """Eight megabytes of them would hold the event loop up for seconds."""
    body = ('{"type":"done","id":1,"value":[' + part * (LONG // len(part)) + "0]}").encode()
    with pytest.raises(ProtocolError, match="many parts"):
        protocol.decode(body)
