import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { keepsMachines } from '../../kit/conformance/machines.ts';
import { simulatedScene } from '../../kit/conformance/simulated-scene.ts';
import { FakeCluster } from './fixtures.ts';

keepsMachines('in API servers in memory', simulatedProvider(Date.now), async () => {
  const clusters = new Map<string, FakeCluster>();
  const cluster = (namespace: string): FakeCluster => {
    const known = clusters.get(namespace) ?? new FakeCluster();
    clusters.set(namespace, known);
    return known;
  };
  return simulatedScene(
    (namespace) => cluster(namespace).client,
    () => [...clusters.values()].reduce((sum, { writes }) => sum + writes.length, 0),
    async () => {},
  );
});
