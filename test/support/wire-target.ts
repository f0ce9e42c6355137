import { Wire } from './wire.js';
import { testNodeAddress } from './xtdb.js';

/** Plain HTTP to the suite's node. Whoever opens it closes it. */
export function testWire(): Wire {
  const address = testNodeAddress();
  if (address.kind !== 'unix') throw new Error(`the suite's node listens on a unix socket, not on ${address.kind}`);
  return new Wire({ socketPath: address.socketPath });
}
