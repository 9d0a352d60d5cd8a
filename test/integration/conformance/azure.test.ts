import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudScene } from '../../kit/conformance/fake-cloud-scene.ts';

keepsClusters('azure', 'Standard_D2s_v5', () => fakeCloudScene('azure'));
