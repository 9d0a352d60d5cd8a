import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudScene } from '../../kit/conformance/fake-cloud-scene.ts';
import { engineFor } from '../../kit/stacks/runner.ts';

keepsClusters(`aws, by the ${engineFor('aws', 'managed')} engine,`, 'm5.large', () => fakeCloudScene('aws'));
