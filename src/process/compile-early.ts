import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 compile each function to machine code before its first run, not after some hundred
 * calls. Meant for servers, where much code runs rarely and an agent's call would wait for code
 * that is not compiled yet. It costs some MiB of memory, and time in short-lived programs.
 */
export function compileEarly(): void {
  setFlagsFromString('--always-sparkplug');
}
