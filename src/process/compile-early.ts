import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 compile each function to machine code before its first run, not after some hundred
 * calls. Use it in processes that answer with much rarely run code. There, an agent's call often
 * waits for code that has run only fifty times. It costs some MiB of memory, and time in
 * short-lived programs.
 */
export function compileEarly(): void {
  setFlagsFromString('--always-sparkplug');
}
