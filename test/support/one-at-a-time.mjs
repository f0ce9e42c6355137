import TestRunner from 'jest-runner';

/** Jest's own runner with a single worker, for suites that measure time. */
export default class OneAtATime extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: 1 }, context);
  }
}
