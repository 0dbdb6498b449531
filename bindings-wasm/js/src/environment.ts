import { invalidArgument } from "./error.js";

/** Environment variables by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of this process. A page has none. */
export function processEnv(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } };
  if (process?.env) return process.env;
  throw invalidArgument("env", "there is no process.env here: pass an object of variables");
}
