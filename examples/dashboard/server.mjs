// Serves the page on this machine. The page holds neither the client secret nor a token: it requests counts from this
// server, which queries the service.
//
// The address and the credentials of the service come from the environment (TALLYFOLD_CLUSTER_ENDPOINT and so on). The
// page shows the hour that ends at the first argument, or now. The server listens on PORT, or on any free port.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Client } from "tallyfold";
import { nodeListener } from "tallyfold/node";
import { pageServer } from "tallyfold/server";

const end = process.argv[2] ?? new Date().toISOString().replace(/:\d\d\.\d+Z/, ":00Z");

const files = {
  "/": ["text/html", new URL("index.html", import.meta.url)],
  "/dashboard.css": ["text/css", new URL("dashboard.css", import.meta.url)],
  "/dashboard.mjs": ["text/javascript", new URL("dashboard.mjs", import.meta.url)],
};

/** The cookie of every visitor who has opened the page. A real server must first check who the visitor is. */
const session = `session=${randomUUID()}`;

const counts = nodeListener(
  pageServer({
    client: Client.fromEnv(),
    // Other programs on this machine may have set cookies, too.
    authorize: (request) => request.headers.get("cookie")?.split("; ").includes(session) ?? false,
  }),
);

async function answer(request) {
  if (request.url === "/config") return ["application/json", JSON.stringify({ end })];
  // The modules of the package. With a bundler, they would be part of the page's own script.
  const [, module] = /^\/modules\/(\w+\.js)$/.exec(request.url) ?? [];
  const file = module
    ? ["text/javascript", new URL(module, import.meta.resolve("tallyfold"))]
    : files[request.url];
  return file && [file[0], await readFile(fileURLToPath(file[1]))];
}

const server = createServer(async (request, response) => {
  if (request.url.startsWith("/tallyfold/")) {
    counts(request, response);
    return;
  }
  const found = await answer(request).catch((error) => {
    console.error(error);
  });
  if (!found) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "content-type": found[0],
    // WebAssembly needs 'wasm-unsafe-eval'.
    "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
    "set-cookie": `${session}; HttpOnly; SameSite=Strict`,
  });
  response.end(found[1]);
});

server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
