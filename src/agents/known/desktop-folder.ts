import { join } from 'node:path';
import { variable } from '../../host/environment.js';
import type { Surroundings } from '../agent.js';

/** Returns the folder in which a desktop application keeps its user's settings. */
export function desktopFolder({ env, home, platform }: Surroundings, application: string): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', application);
  if (platform === 'win32') return join(variable(env, 'APPDATA') ?? join(home, 'AppData', 'Roaming'), application);
  return join(variable(env, 'XDG_CONFIG_HOME') ?? join(home, '.config'), application);
}
