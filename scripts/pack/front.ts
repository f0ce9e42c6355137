/** The parts of the program that `pack-all.mjs` runs to build the node. */
export { readFrontFiles, sha256Of } from '../../src/node/front-files.js';
export { buildJars } from '../../src/node/install.js';
export { findJava } from '../../src/node/java.js';
export { frontKey, NODE_MANIFEST } from '../../src/node/packaged-node.js';
export { PACKAGED_PLATFORMS, platformPackageName } from '../../src/process/platform-package.js';
