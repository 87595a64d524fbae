"""httpx as the transport of ``custody.common.exchange``, for a program that awaits: each exchange ends in
time, and its answer is bounded as it comes. A blocking program has ``custody.common.plain_http``.
"""

import asyncio

import httpx

from custody.common import exchange


async def perform(http: httpx.AsyncClient, request: exchange.HttpRequest) -> exchange.Outcome:
    """Over a client that follows no redirects."""
    # httpx must not send cookies by itself: a plan says which are sent, and where.
    http.cookies.clear()
    try:
        async with asyncio.timeout(request.whole):
            response = await http.send(message(request), stream=True)
            try:
                body = exchange.Body(request, response.headers)
                async for piece in response.aiter_bytes():
                    body.add(piece)
            finally:
                await response.aclose()
        return exchange.HttpReply(response.status_code, response.headers, body.whole(), request.path)
    except TimeoutError:
        return exchange.NoAnswer(exchange.Why.ENDLESS, httpx.ReadTimeout("The answer has no end."))
    except (httpx.TransportError, exchange.Unfit) as error:
        return no_answer(error)


def message(request: exchange.HttpRequest) -> httpx.Request:
    timeout = httpx.Timeout(request.silence, connect=exchange.CONNECT_SECONDS)
    return httpx.Request(
        request.method,
        request.url,
        headers=request.headers,
        content=request.content,
        extensions={"timeout": timeout.as_dict()},
    )


def no_answer(error: httpx.TransportError | exchange.Unfit) -> exchange.NoAnswer:
    match error:
        case exchange.Unfit():
            return exchange.NoAnswer(exchange.Why.UNFIT, error)
        case httpx.ConnectError():
            return exchange.NoAnswer(exchange.Why.NO_CONNECTION, error)
        case httpx.TimeoutException():
            return exchange.NoAnswer(exchange.Why.LATE, error)
        case _:
            return exchange.NoAnswer(exchange.Why.BROKEN, error)
