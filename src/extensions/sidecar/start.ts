import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DEFAULT_LOOP_LAYOUT } from '../../assembly/assembly-record.js';
import { isLayout } from '../../assembly/renderers.js';
import { type Environment, type LoopSettings, loopSettings } from '../../host/environment.js';
import { defined } from '../../values/defined.js';
import { guideOf } from '../guide.js';
import { LoopGuard, type LoopGuardOptions } from './loop-guard.js';
import type { Beginning } from './protocol.js';
import { SidecarProcess } from './sidecar-process.js';
import { TroubleFile } from './trouble-file.js';

/** An extension's environment, and how it notifies the user. */
export interface Surroundings {
  /** The URL of the built extension. The sidecar's program is in the same folder. */
  readonly extension: string;
  /** The default Node for the sidecar. An environment variable overrides it. */
  readonly node: string;
  readonly env: Environment;
  /** Shows a line to the user. */
  readonly notify: (line: string) => void;
}

function timesTo(file: string | undefined): Pick<LoopGuardOptions, 'onPassed'> {
  if (file === undefined) return {};
  return { onPassed: (ms, objects) => appendFileSync(file, `${JSON.stringify({ ms, objects })}\n`, { mode: 0o600 }) };
}

/**
 * Returns the layout in the settings. If it is unknown, notifies the user and returns nothing,
 * which selects the default.
 */
function layoutOf({ layout }: LoopSettings, notify: Surroundings['notify']): Pick<Beginning, 'layout'> {
  if (layout === undefined) return {};
  if (isLayout(layout)) return { layout };
  notify(`Palimpsest: there is no layout ${JSON.stringify(layout)}; the context has the layout ${DEFAULT_LOOP_LAYOUT}`);
  return {};
}

/**
 * Returns the retention in the settings. If it is unknown, notifies the user and returns nothing,
 * which selects the layout's default.
 */
function retentionOf({ retention }: LoopSettings, notify: Surroundings['notify']): Pick<Beginning, 'retention'> {
  if (retention === undefined) return {};
  if (retention === 'use' || retention === 'window') return { retention };
  notify(`Palimpsest: PALIMPSEST_LOOP_RETENTION is ${JSON.stringify(retention)}; set it to use or window`);
  return {};
}

/**
 * Returns whether a variable turns a feature on (1) or off (0). For any other value, notifies the
 * user and returns undefined.
 */
function isOn(name: string, value: string | undefined, notify: Surroundings['notify']): boolean | undefined {
  if (value === '0' || value === '1') return value === '1';
  if (value !== undefined) notify(`Palimpsest: ${name} is ${JSON.stringify(value)}; set it to 1 or 0`);
  return undefined;
}

/** Starts the sidecar of a harness. Returns the guard that uses it. */
export function startSidecar(what: Beginning, { extension, node, env, notify }: Surroundings): LoopGuard {
  const settings = loopSettings(env);
  const rendering = defined({
    strict: isOn('PALIMPSEST_LOOP_STRICT', settings.strict, notify),
    shortIds: isOn('PALIMPSEST_LOOP_SHORT_IDS', settings.shortIds, notify),
  });
  const beginning: Beginning = {
    ...what,
    ...rendering,
    ...layoutOf(settings, notify),
    ...retentionOf(settings, notify),
  };
  const program = fileURLToPath(new URL('./sidecar.js', extension));
  const sidecar = new SidecarProcess({ node: settings.node ?? node, program, env, beginning });
  sidecar.start();
  return new LoopGuard({
    sidecar,
    trouble: new TroubleFile(settings.dataDir, beginning.what),
    limitMs: settings.limitMs,
    notify,
    ...defined({ guide: guideOf(beginning.layout) }),
    ...timesTo(settings.timesFile),
  });
}
