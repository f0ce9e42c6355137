import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DEFAULT_LOOP_LAYOUT } from '../../assembly/assembly-record.js';
import { isLayout } from '../../assembly/renderers.js';
import { type Environment, type LoopSettings, loopSettings } from '../../host/environment.js';
import { guideOf } from '../guide.js';
import { LoopGuard, type LoopGuardOptions, TroubleFile } from './loop-guard.js';
import type { Beginning } from './protocol.js';
import { SidecarProcess } from './sidecar-process.js';

/** Where an extension runs, and how it reaches its user. */
export interface Surroundings {
  /** The URL of the built extension; the program of the sidecar lies in the same folder. */
  readonly extension: string;
  /** The Node for that program, unless the environment names one. */
  readonly node: string;
  readonly env: Environment;
  /** Shows the user a line. */
  readonly notify: (line: string) => void;
}

function timesTo(file: string | undefined): Pick<LoopGuardOptions, 'onPassed'> {
  if (file === undefined) return {};
  return { onPassed: (ms, objects) => appendFileSync(file, `${JSON.stringify({ ms, objects })}\n`, { mode: 0o600 }) };
}

/** The layout that is asked for; for an unknown one the user is notified, and the usual one stays. */
function layoutOf({ layout }: LoopSettings, notify: Surroundings['notify']): Pick<Beginning, 'layout'> {
  if (layout === undefined) return {};
  if (isLayout(layout)) return { layout };
  notify(`Palimpsest: there is no layout ${JSON.stringify(layout)}; the context has the layout ${DEFAULT_LOOP_LAYOUT}`);
  return {};
}

/** The retention that is asked for; for an unknown one the user is notified, and that of the layout stays. */
function retentionOf({ retention }: LoopSettings, notify: Surroundings['notify']): Pick<Beginning, 'retention'> {
  if (retention === undefined) return {};
  if (retention === 'use' || retention === 'window') return { retention };
  notify(`Palimpsest: PALIMPSEST_LOOP_RETENTION is ${JSON.stringify(retention)}; set it to use or window`);
  return {};
}

/** Whether a variable turns something on; for a value that is neither 1 nor 0 the user is notified, and it stays off. */
function isOn(name: string, value: string | undefined, notify: Surroundings['notify']): boolean {
  if (value !== undefined && value !== '0' && value !== '1') notify(`Palimpsest: ${name} is ${JSON.stringify(value)}; set it to 1 or 0`);
  return value === '1';
}

/** Starts the sidecar of a harness: gives what asks it on behalf of the harness. */
export function startSidecar(what: Beginning, { extension, node, env, notify }: Surroundings): LoopGuard {
  const settings = loopSettings(env);
  const rendering = {
    strict: isOn('PALIMPSEST_LOOP_STRICT', settings.strict, notify),
    shortIds: isOn('PALIMPSEST_LOOP_SHORT_IDS', settings.shortIds, notify),
  };
  const beginning: Beginning = { ...what, ...rendering, ...layoutOf(settings, notify), ...retentionOf(settings, notify) };
  const program = fileURLToPath(new URL('./sidecar.js', extension));
  const sidecar = new SidecarProcess({ node: settings.node ?? node, program, env, beginning });
  sidecar.start();
  return new LoopGuard({
    sidecar,
    guide: guideOf(beginning.layout),
    trouble: new TroubleFile(settings.dataDir, beginning.what),
    limitMs: settings.limitMs,
    notify,
    ...timesTo(settings.timesFile),
  });
}
