import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudScene } from '../../kit/conformance/fake-cloud-scene.ts';

keepsClusters('gcp', 'e2-standard-2', () => fakeCloudScene('gcp'));
