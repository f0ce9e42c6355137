import { setFlagsFromString } from 'node:v8';

/**
 * Raises V8's threshold for optimising code, in this process and its threads. A program that runs
 * for a minute in several threads would otherwise spend a quarter of its time on compiling. Only V8
 * of Node 20 has this flag.
 */
export function optimiseLate(): void {
  if (process.versions.v8.startsWith('11.3.')) setFlagsFromString('--interrupt-budget=1000000');
}
