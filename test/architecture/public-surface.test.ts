import { expect, test } from '@jest/globals';
import * as surface from '../../src/index.js';

test('the public surface names these values and no others', () => {
  expect(Object.keys(surface).sort()).toEqual([
    'ContextClient',
    'ContextSession',
    'DEFAULT_POLICY',
    'DocumentError',
    'HarnessClient',
    'HarnessError',
    'HarnessSession',
    'NodeError',
    'SessionError',
    'SourceError',
    'StoreError',
    'XtdbError',
    'canonicalJson',
    'canonicalPath',
    'createContextClient',
    'ensureNode',
    'filesystemId',
    'localFilesystemId',
    'metadataLine',
    'nodeStatus',
    'objectId',
    'parseMount',
    'restoreVersion',
    'sessionId',
    'stopNode',
  ]);
});
