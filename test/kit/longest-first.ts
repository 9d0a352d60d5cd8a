import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longestFirst } from './durations.ts';

/** vitest's order of files: tier by tier, and in a tier the longest first, by the committed table. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    const { root } = this.ctx.config;
    return longestFirst(files, ({ moduleId }) => moduleId.slice(root.length + 1)).toSorted(
      (one, other) => order(one) - order(other),
    );
  }
}
