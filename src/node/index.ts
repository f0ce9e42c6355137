/** The room that starts, finds, watches over and stops the database node. */
export { type EnsureNodeOptions, ensureNode, type NodeHandle } from './ensure.js';
export { NodeError, type NodeErrorCode } from './errors.js';
export { type LaunchPlan, parseLaunchPlan } from './launch.js';
export { type NodeLogs, type NodeStatusReport, nodeLogs, nodeStatus } from './node-status.js';
export { NODE_PROFILES, type NodePhase, type NodeProfile, type OwnNodeAddress } from './state-file.js';
export { stopNode } from './stop-node.js';
export { superviseNode } from './supervise.js';
