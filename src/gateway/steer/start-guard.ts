import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LoopGuard } from '../../extensions/sidecar/loop-guard.js';
import { SidecarProcess } from '../../extensions/sidecar/sidecar-process.js';
import { TroubleFile } from '../../extensions/sidecar/trouble-file.js';
import type { SteeringOptions } from './steering.js';

/** Options of a gateway's sidecar. */
export interface GuardOptions {
  readonly dataDir: string;
  /** The working folder of the agents, and the root of their files. */
  readonly folder: string;
  readonly limitMs: number;
  /** Shows a line to the user. */
  readonly notify: (line: string) => void;
  /** Default: the sidecar's program in this program's folder. */
  readonly program?: string;
}

const besideThis = (): string => join(dirname(realpathSync(process.argv[1] ?? '')), 'sidecar.js');

/** Returns a function that starts the sidecar of a gateway and returns its guard. */
export const startGuard =
  ({ dataDir, folder, limitMs, notify, program = besideThis() }: GuardOptions): SteeringOptions['guard'] =>
  (onBypass) => {
    const sidecar = new SidecarProcess({
      node: process.execPath,
      program,
      env: { ...process.env, PALIMPSEST_DATA: dataDir },
      beginning: { what: 'gateway', cwd: folder, roots: [folder], layout: 'epoch' },
    });
    sidecar.start();
    const trouble = new TroubleFile(dataDir, 'gateway');
    return new LoopGuard({ sidecar, trouble, limitMs, notify, onBypass });
  };
