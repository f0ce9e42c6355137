import Sequencer from '@jest/test-sequencer';

/** Suites on a node come first, since they wait most; within each kind the order is Jest's own: what took long the last time, or is large. */
export default class LiveFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const isUnit = ({ context }) => context.config.displayName?.name === 'unit';
    return [...sorted.filter((test) => !isUnit(test)), ...sorted.filter(isUnit)];
  }
}
