import { checkDataFormat, DATA_FORMAT } from '../node/data-folder.js';
import { type NodeStatusReport, nodeStatus } from '../node/node-status.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { describeAddress, parseNodeUrls } from '../xtdb/address.js';
import { type NodeHealth, probeHealth } from '../xtdb/node-list.js';
import type { Settings } from './settings.js';

/** The node of a data folder, with its formats. */
export interface InspectedNode {
  readonly status: NodeStatusReport;
  /** The format of the data folder; null without a database. */
  readonly format: number | null;
  /** Why this version must not use the folder; null if it may. */
  readonly formatTrouble: string | null;
}

/** A node that another program runs. */
export interface RemoteNode {
  readonly address: string;
  readonly health: NodeHealth;
  /** The health in words; for a node that is unreachable or stopped indexing, the reason. */
  readonly why: string;
  readonly version: string | null;
  /** Number of steps by which its index is behind a shared log; null if unknown. */
  readonly behind: number | null;
  /** Its shared log and the format of the content; null if it has none or does not report it. */
  readonly log: { readonly name: string; readonly format: number | null } | null;
  /**
   * Why it must not be used with the other nodes: it has another shared log, or a log of another
   * format. Null if it may be used.
   */
  readonly trouble: string | null;
}

/** Every node that the settings name. */
export interface InspectedNodes {
  readonly own: InspectedNode;
  /** The nodes of XTDB_URL, in its order. */
  readonly remote: readonly RemoteNode[];
  /** Whether all nodes of XTDB_URL are ready, and the data folder's own node if it is used. */
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
 * Returns the state of every node that the settings name: the data folder's own node, and each of
 * XTDB_URL. Changes and starts nothing.
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
      trouble: isOther ? 'HAS A DIFFERENT LOG than the first node that answers' : format,
    };
  });
  const { status, formatTrouble } = own;
  const isOwnWell =
    status.running && status.answers && !status.ingesterFailed && !status.storeFailed && formatTrouble === null;
  const areWell = remote.every(({ health, trouble }) => health === 'ready' && trouble === null);
  return { own, remote, healthy: areWell && (addresses.length > 0 ? !status.running || isOwnWell : isOwnWell) };
}
