import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { memoryScene } from '../../kit/conformance/memory-scene.ts';

keepsClusters('the cloud in memory', 'm', memoryScene);
