import { escapedLine, printLines, reportFailure, writeJson } from '../../cli/output.js';
import { dataFolder } from '../../host/environment.js';
import { ownId } from '../../host/own-id.js';
import { setSteered, steeredSessions, steeredState } from '../../host/steered-sessions.js';
import { GatewayError } from '../gateway-error.js';

/** Flags of `palimpsest steer`. */
export interface SteerFlags {
  readonly data?: string;
  readonly json?: boolean;
}

/** A change to a session's steering. */
export type SteerChange = 'on' | 'off' | 'tidy';

/** Shows or changes how a session is steered. Its gateway applies a change to the next request. */
export function steerAction(
  change: SteerChange | 'list',
  session: string | undefined,
  { data, json = false }: SteerFlags,
): Promise<void> {
  return reportFailure({ json }, async () => {
    const dataDir = data ?? dataFolder(process.env);
    const all = await steeredSessions(dataDir);
    if (change !== 'list') {
      const id = session === undefined ? undefined : ownId(session);
      const known = id === undefined ? undefined : await steeredState(dataDir, id);
      if (id === undefined || known === undefined)
        throw new GatewayError(
          'unknown-session',
          `no gateway of this data folder steered the session ${session ?? ''}; palimpsest steer list shows the others`,
        );
      const tidied = known.tidied + (change === 'tidy' ? 1 : 0);
      await setSteered(dataDir, id, { ...known, tidied, on: change === 'tidy' ? known.on : change === 'on' });
    }
    const shown = await Promise.all(
      all.map(async (id) => ({ session: id, on: (await steeredState(dataDir, id))?.on })),
    );
    const states = shown.map(({ session: id, on }) => ({ session: id, steering: on === true ? 'on' : 'off' }));
    const asked = change === 'list' ? states : states.filter((one) => one.session === ownId(session ?? ''));
    if (json) return writeJson({ sessions: asked });
    printLines(
      asked.length === 0
        ? ['No gateway of this data folder steered a session. To steer one: palimpsest run --steer claude']
        : asked.map(({ session: id, steering }) => escapedLine(`${id} ${steering}`)),
    );
  });
}
