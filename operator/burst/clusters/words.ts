import { rfc3339 } from '../../api/conditions.ts';
import type { Peak, WaitingWork } from './model.ts';
import { totalOf } from './room.ts';

const NAMED = 3;

export const sourceText = ({ name, isMinimum }: Peak): string => (isMinimum ? 'minimumClusters' : `peak ${name}`);

/** Whether a source stands for a peak or for minimumClusters. */
export const isForPeak = (source: string): boolean => source === 'minimumClusters' || source.startsWith('peak ');

/** Number of clusters that a peak asks for, a clause. */
export const askedBy = (peak: Peak): string => {
  const clusters = `${peak.clusters} ${peak.clusters === 1 ? 'cluster' : 'clusters'}`;
  if (peak.isMinimum) return `the policy is to have ${clusters} at least (minimumClusters)`;
  return `${sourceText(peak)} is to have ${clusters} until ${plainText(peak.until)}`;
};

export const replicasText = (work: readonly WaitingWork[]): string => {
  const count = totalOf(work);
  const sizes = [...new Set(work.map(({ each }) => each))];
  return `${count} ${count === 1 ? 'replica' : 'replicas'} (${listText(sizes)} each)`;
};

export const nodesText = (count: number): string => `${count} ${count === 1 ? 'node' : 'nodes'}`;

export const listText = (names: readonly string[]): string =>
  names.length > NAMED ? `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more` : names.join(', ');

export const plainText = (time: number): string => rfc3339(new Date(time));
