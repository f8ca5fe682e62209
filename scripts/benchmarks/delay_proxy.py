"""Passes TCP connections on to a server and delays every byte in both directions, as a distant network would.

    delay_proxy.py PORT SERVER_PORT MILLISECONDS

A round trip takes MILLISECONDS more. The bandwidth is not limited. Prints a line when it listens.
"""

import asyncio
import sys


async def pump(reader, writer, seconds):
    """Writes what it reads, each piece so many seconds after it has come; pieces do not wait for each other."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def send():
        while (piece := await queue.get())[1]:
            due, data = piece
            await asyncio.sleep(max(0, due - loop.time()))
            writer.write(data)
            await writer.drain()
        await asyncio.sleep(max(0, piece[0] - loop.time()))
        writer.close()

    sender = asyncio.create_task(send())
    try:
        while data := await reader.read(1 << 18):
            queue.put_nowait((loop.time() + seconds, data))
    except ConnectionError:
        pass
    queue.put_nowait((loop.time() + seconds, b""))
    try:
        await sender
    except ConnectionError:
        pass


async def main():
    """Listens for ever."""
    port, server, milliseconds = map(int, sys.argv[1:])
    seconds = milliseconds / 2000

    async def connected(reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", server, limit=1 << 20)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, back, seconds), pump(there, writer, seconds))

    listener = await asyncio.start_server(connected, "127.0.0.1", port, limit=1 << 20)
    print("listening", flush=True)
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
