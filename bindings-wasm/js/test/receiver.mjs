// A receiver of pushes.

import { once } from "node:events";
import { createServer } from "node:http";

/** A receiver on loopback, which answers with a status, or what `answer` does. */
export async function receiver(t, answer = () => 204) {
  const got = [];
  const server = createServer((request, response) => {
    const body = [];
    request.on("data", (chunk) => body.push(chunk));
    request.on("end", async () => {
      const message = { ...request, body: Buffer.concat(body), headers: request.headers };
      const answered = await answer({ ...message, url: request.url, method: request.method }, got);
      const {
        status,
        headers = {},
        text = "",
      } = typeof answered === "number" ? { status: answered } : answered;
      got.push({ url: request.url, method: request.method, ...message, status });
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, headers).end(text);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/in?db=events`;
  const taken = () => got.filter(({ status }) => status < 300).map(({ body }) => body);
  return { url, got, taken };
}
