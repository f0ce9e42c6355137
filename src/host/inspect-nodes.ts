import { checkDataFormat, DATA_FORMAT } from '../node/data-folder.js';
import { type NodeStatusReport, nodeStatus } from '../node/node-status.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { describeAddress, parseNodeUrls } from '../xtdb/address.js';
import { type NodeHealth, probeHealth } from '../xtdb/node-list.js';
import type { Settings } from './settings.js';

/** The node of a data folder, with the formats that it works with. */
export interface InspectedNode {
  readonly status: NodeStatusReport;
  /** The format of the data folder; null for one without a database. */
  readonly format: number | null;
  /** Why this version must not use the folder; null where it may. */
  readonly formatTrouble: string | null;
}

/** A node that someone else runs. */
export interface RemoteNode {
  readonly address: string;
  readonly health: NodeHealth;
  /** The health in words; of a node that cannot be reached or has stopped indexing, the reason. */
  readonly why: string;
  readonly version: string | null;
  /** How many steps of a shared log its index is behind; null where it does not say. */
  readonly behind: number | null;
  /** The log that it shares, and the format of what is in it; null where it shares none or does not say. */
  readonly log: { readonly name: string; readonly format: number | null } | null;
  /** Why it should not be used with the others: it shares another log, or one of another format; null where nothing is the matter. */
  readonly trouble: string | null;
}

/** Every node that the settings name. */
export interface InspectedNodes {
  readonly own: InspectedNode;
  /** Those of XTDB_URL, in its order. */
  readonly remote: readonly RemoteNode[];
  /** Whether each of XTDB_URL is ready, and the one of the data folder where that is the one in use. */
  readonly healthy: boolean;
}

async function inspectOwn({ dataDir, environment }: Settings['node']): Promise<InspectedNode> {
  const [status, format] = await Promise.all([
    nodeStatus(dataDir, environment),
    checkDataFormat(dataDir).catch((error: unknown) => messageOf(error)),
  ]);
  return typeof format === 'string'
    ? { status, format: null, formatTrouble: format }
    : { status, format: format ?? null, formatTrouble: null };
}

/**
 * Asks every node that the settings name how it is: that of the data folder, and each of XTDB_URL. Changes nothing and starts nothing.
 * @throws {UsageError} usage – the token cannot be read
 */
export async function inspectNodes({ node, nodeUrl, nodeToken }: Settings): Promise<InspectedNodes> {
  const token = nodeToken?.();
  const addresses = nodeUrl === undefined ? [] : parseNodeUrls(nodeUrl);
  const [own, ...probed] = await Promise.all([
    inspectOwn(node),
    ...addresses.map((address) => probeHealth({ ...address, ...defined({ token }) })),
  ]);
  const first = probed.find(({ status }) => status !== undefined)?.status?.log?.name;
  const remote = probed.map(({ address, health, why, status }): RemoteNode => {
    const { version, behind, log } = status ?? {};
    const isOther = status !== undefined && log?.name !== first;
    const isForeign = log?.format !== undefined && log.format !== DATA_FORMAT;
    const format = isForeign ? `its log has format ${log.format}, and this version has format ${DATA_FORMAT}` : null;
    return {
      address: describeAddress(address),
      health,
      why,
      version: version ?? null,
      behind: behind ?? null,
      log: log === undefined ? null : { name: log.name, format: log.format ?? null },
      trouble: isOther ? 'ITS LOG IS ANOTHER ONE than that of the first node that answers' : format,
    };
  });
  const { status, formatTrouble } = own;
  const isOwnWell =
    status.running && status.answers && !status.ingesterFailed && !status.storeFailed && formatTrouble === null;
  const areWell = remote.every(({ health, trouble }) => health === 'ready' && trouble === null);
  return { own, remote, healthy: areWell && (addresses.length > 0 ? !status.running || isOwnWell : isOwnWell) };
}
