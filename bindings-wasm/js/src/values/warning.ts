/** Warns by a name: in Node as its own warnings, in other hosts in the console. */
export function warning(name: string, message: string): void {
  const { process } = globalThis as {
    process?: { emitWarning?: (message: string, name: string) => void };
  };
  if (process?.emitWarning) process.emitWarning(message, name);
  else console.warn(`${name}: ${message}`);
}
