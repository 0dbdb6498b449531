// Serves the dashboard on this machine, and keeps the client secret away from it: the page asks
// here for a token, which is fetched from the service in the server's name.
//
// Takes the same environment as report.mjs; the end of the hour is the first argument, or now.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const address = process.env.TALLYFOLD_ADDRESS;
const end = process.argv[2] ?? new Date().toISOString().replace(/:\d\d\.\d+Z/, ":00Z");

const files = {
  "/": ["text/html", new URL("index.html", import.meta.url)],
  "/dashboard.css": ["text/css", new URL("dashboard.css", import.meta.url)],
  "/dashboard.mjs": ["text/javascript", new URL("dashboard.mjs", import.meta.url)],
  "/tallyfold.js": ["text/javascript", import.meta.resolve("tallyfold")],
};

/** The token that the page's client asks for. A real server asks first who the visitor is. */
async function controlToken() {
  const response = await fetch(`${address}/v1.1/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_id: process.env.TALLYFOLD_CLIENT_ID,
      client_secret: process.env.TALLYFOLD_CLIENT_SECRET,
      audience: process.env.TALLYFOLD_CONTROL_AUDIENCE,
    }),
  });
  const { access_token: accessToken, expires_in: expiresIn } = await response.json();
  return { accessToken, expiresIn };
}

async function answer(request) {
  if (request.method === "POST" && request.url === "/token/control") {
    return ["application/json", JSON.stringify(await controlToken())];
  }
  if (request.url === "/config") {
    return ["application/json", JSON.stringify({ clusterEndpoint: address, end })];
  }
  const file = files[request.url];
  return file && [file[0], await readFile(fileURLToPath(file[1]))];
}

const server = createServer(async (request, response) => {
  const found = await answer(request).catch((error) => {
    console.error(error);
  });
  if (!found) {
    response.writeHead(404).end();
    return;
  }
  // WebAssembly needs 'wasm-unsafe-eval', and the page calls the service directly.
  const policy = `default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ${address}`;
  response.writeHead(200, { "content-type": found[0], "content-security-policy": policy });
  response.end(found[1]);
});

server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
