import { compileEarly } from '../../process/compile-early.js';
import { refuseBeyondFileSizeLimit } from '../../process/system-error.js';
import { serveSidecar } from './serve-sidecar.js';

// Keys that are pressed in the harness's terminal are meant for the harness. This process ends when
// the harness closes the pipe.
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);
refuseBeyondFileSizeLimit();
compileEarly();
await serveSidecar(process.stdin, process.stdout, process.env);
process.exit(0);
