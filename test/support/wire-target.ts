import { Wire } from './wire.js';
import { testNodeAddress } from './xtdb.js';

/** Returns plain HTTP to the suite's node. The caller closes it. */
export function testWire(): Wire {
  const address = testNodeAddress();
  if (address.kind !== 'unix') throw new Error(`the suite's node listens on a unix socket, not on ${address.kind}`);
  return new Wire({ socketPath: address.socketPath }, { shared: true });
}
