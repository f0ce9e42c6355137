import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 turn each function that is used from now on into machine code before it first runs, not after some hundred calls. For processes that answer with much code run seldom: what
 * an agent waits for its call is code that has run fifty times. Costs some MiB, and time in a program that soon ends.
 */
export function compileEarly(): void {
  setFlagsFromString('--always-sparkplug');
}
