import TestRunner from 'jest-runner';

/** Jest's own runner with one worker, whatever the run has: for suites that measure how long something takes. */
export default class OneAtATime extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: 1 }, context);
  }
}
