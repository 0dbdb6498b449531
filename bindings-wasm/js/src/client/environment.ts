import { environment } from "../values/declared.js";
import { invalidArgument, missingArgument, TallyfoldError } from "../values/error.js";

/** Environment variables by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

type Name = keyof typeof environment;

/** The environment of this process. A page has none. */
export function processEnv(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } };
  if (process?.env) return process.env;
  throw invalidArgument("env", "there is no process.env here: pass an object of variables");
}

/**
 * Makes something of the arguments that are given and of those in the environment.
 *
 * @param hasSource Whether tokens come from elsewhere, and not by the secret.
 * @throws {@link TallyfoldError} with the names of all variables that are missing.
 */
export function fromEnvironment<O extends { readonly [N in Name]?: string | URL | undefined }, T>(
  env: Environment,
  given: O,
  hasSource: boolean,
  make: (options: O) => T,
): T {
  const found: Partial<Record<Name, string | URL>> = {};
  for (const name of Object.keys(environment) as Name[]) {
    const value = given[name] ?? (env[environment[name]] || undefined);
    const isUnused = hasSource && name === "clientSecret" && !given[name];
    if (value !== undefined && !isUnused) found[name] = value;
  }
  const missing: string[] = [];
  for (;;) {
    try {
      const made = make({ ...given, ...found });
      if (missing.length === 0) return made;
      break;
    } catch (error) {
      const name = TallyfoldError.is(error) && error.code === "missing_argument" && error.argument;
      if (!name || !(name in environment) || name in found) throw error;
      // The core names one at a time. With something in its place, it names the next one.
      missing.push(name);
      found[name as Name] = "https://missing.example";
    }
  }
  throw missingArgument(missing[0] as string, lacking(missing as Name[], env));
}

function lacking(missing: Name[], env: Environment): string {
  const known: string[] = Object.values(environment);
  const wanted = missing.map((name) => environment[name]).join(", ");
  const others = Object.keys(env).filter(
    (name) => name.startsWith("TALLYFOLD_") && !known.includes(name),
  );
  const hint = others.length > 0 ? `; these are set, but unknown: ${others.join(", ")}` : "";
  return `not set in the environment, or empty: ${wanted}${hint}`;
}
