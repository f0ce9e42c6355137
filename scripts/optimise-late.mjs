/**
 * Has V8 optimise code only when it has run many times as long as usual, before Jest and in each of its processes. V8 of Node 20 alone has this flag; later ones end a process that is begun with it.
 */
import { setFlagsFromString } from 'node:v8';

if (process.versions.v8.startsWith('11.3.')) setFlagsFromString('--interrupt-budget=1000000');
