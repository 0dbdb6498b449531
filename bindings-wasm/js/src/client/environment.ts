import { core } from "../loading/library.js";
import { environment } from "../values/declared.js";
import { invalidArgument, missingArgument, TallyfoldError } from "../values/error.js";
import type { Url } from "../values/host.js";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

type Name = keyof typeof environment;

/** Arguments that may also come from environment variables, and whether a client needs no tokens. */
type Given = { readonly [N in Name]?: string | Url | undefined } & {
  readonly tokenless?: boolean | undefined;
};

/** The environment of this process. A page has none. */
export function processEnv(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } };
  if (process?.env) return process.env;
  throw invalidArgument("env", "there is no process.env here: pass an object of variables");
}

/**
 * Calls `make` with the given arguments and the arguments from environment variables. Given arguments take precedence.
 *
 * @param hasSource Whether the caller has a source of tokens, so that the client secret is not needed.
 * @throws {@link TallyfoldError} with the names of all missing variables, or of the variable that can't be used.
 */
export function fromEnvironment<O extends Given, T>(
  env: Environment,
  given: O,
  hasSource: boolean,
  make: (options: O) => T,
): T {
  const found: Partial<Record<Name, string | Url>> = {};
  for (const name of Object.keys(environment) as Name[]) {
    const value = given[name] ?? (env[environment[name]] || undefined);
    const isUnused = hasSource && name === "clientSecret" && !given[name];
    if (value !== undefined && !isUnused) found[name] = value;
  }
  try {
    return make({ ...given, ...found });
  } catch (error) {
    if (!TallyfoldError.is(error)) throw error;
    const { argument, code, message } = error;
    const name = argument as Name;
    if (name in found && found[name] !== given[name]) {
      throw TallyfoldError.of({ ...error, message: message.replace(name, environment[name]) });
    }
    if (code !== "missing_argument" || !(name in environment) || name in found) throw error;
    const names = (Object.keys(found) as Name[]).map((found) => nameOf(environment[found]));
    const needsNone = hasSource || given.tokenless === true;
    const missing = core().CoreMachine.missing(names, needsNone) as string[];
    throw missingArgument(name, lacking(missing, env));
  }
}

const PREFIX = "TALLYFOLD_";

/** Returns the Rust name of the option that a variable sets. */
function nameOf(variable: string): string {
  return variable.slice(PREFIX.length).toLowerCase();
}

/** @param missing The Rust names of the missing options. */
function lacking(missing: string[], env: Environment): string {
  const known: string[] = Object.values(environment);
  const wanted = missing.map((name) => PREFIX + name.toUpperCase()).join(", ");
  const others = Object.keys(env).filter(
    (name) => name.startsWith(PREFIX) && !known.includes(name),
  );
  const hint = others.length > 0 ? `; these are set, but unknown: ${others.join(", ")}` : "";
  return `not set in the environment, or empty: ${wanted}${hint}`;
}
