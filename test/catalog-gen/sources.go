package main

// source is a package at an exact version. sha256 is the digest of its tarball.
type source struct{ name, version, sha256 string }

// chatPackage knows chat and image models with limits and prices (MIT).
var chatPackage = source{"@earendil-works/pi-ai", "1.5.2", "d5715efa834c23bfdf10a042b49df4ee169cc99000bf16d7998fab2d533b45f8"}

// typePackages name models in their type files (Apache-2.0 or MIT, see NOTICE).
var typePackages = []source{
	{"@ai-sdk/alibaba", "2.0.58", "6069f5abb5326d6adece584568f5a9099f0dfeea535e1024f16f2e2da91f8bdf"},
	{"@ai-sdk/amazon-bedrock", "5.0.101", "f14db24fc5c55ec5328c197e1c99fd7561a80112a57c59b92649a7515ef4c49c"},
	{"@ai-sdk/assemblyai", "3.0.40", "068db4627da6ee042171180255d97b81c0e899dabdbb012c4f592d038298195e"},
	{"@ai-sdk/black-forest-labs", "2.0.41", "f537b4ceb946a3900dd59d8dc7809199e057b746ba0927aba69f2b9931a5f4c0"},
	{"@ai-sdk/cohere", "4.0.52", "899a5d98e9d709e4ba355de090e85945aff7a7b457014e0296b0989ce03d1fd8"},
	{"@ai-sdk/deepgram", "3.1.16", "b4fb9986781b40dcc747e31db1cd196b716935a1d064fde77061e936bafba83d"},
	{"@ai-sdk/deepinfra", "3.0.57", "3486b16481c1bb8965bcda04e69b364f7b1de581ed96859fbb587efc61284507"},
	{"@ai-sdk/elevenlabs", "3.0.46", "cf7d68da95dca426afbd032bfdb2d982ed8eec13519a7f0977eb0de66ab5b561"},
	{"@ai-sdk/fal", "3.0.41", "fca6267e19c932b5f9acb9bec273c477b260483f9b635f6f556d0028a4370594"},
	{"@ai-sdk/fireworks", "3.0.62", "6bc37b425105db550ab85f38f793cb16a869c40362b24da36229ccfe07cd8e10"},
	{"@ai-sdk/google", "4.0.121", "2363820e0d783f65b4d9873550e7afe444d191abd20e0b9fdc7834516d5a0278"},
	{"@ai-sdk/google-vertex", "5.0.141", "edcd784e055cdaf160f9113276f4a3418924f7480969e77218d2ad0c2f296613"},
	{"@ai-sdk/groq", "4.0.84", "e9f6718790ab03f28236af45e4ba44716870ea170a0f3cd28fdbe1286bd676ca"},
	{"@ai-sdk/luma", "3.0.41", "5746b89d5a3e3a721dd71b6ac4199355f23d5cfdcd3590c1066baf1f7fb3a5f1"},
	{"@ai-sdk/mistral", "4.0.87", "9ef84d1dcb6edad8a2ca4e954221128f6c9b6c0a79fcf189bb2424d2cfea8e5b"},
	{"@ai-sdk/openai", "4.0.118", "1d804bf18815642f247ce290a44f20d5138758c470e0d735d3f9f92672badc42"},
	{"@ai-sdk/perplexity", "4.0.49", "036cfeff2df11c098c20ea47c033dbca55e014597871fbed8308ca84c7b32e4d"},
	{"@ai-sdk/replicate", "3.0.46", "179a652f2b3dbb222387b77332cc56f58297c23a47bb5e549efb3c170a8ac38b"},
	{"@ai-sdk/togetherai", "3.0.54", "028a2bb63614a5f11567e426e292f191b372ed2a31dd18b8c4f23188fe1ed4c9"},
	{"@ai-sdk/xai", "5.0.12", "0aacda7155e8102125ed810a2b853e79b8c47c28d05813aa0fbd86dd20bce5fc"},
	{"jina-ai-provider", "1.0.0", "971eecc86003bf5a02180a3901e1116bd6ac1b915e5928e54dccfb1e92677878"},
	{"voyage-ai-provider", "4.0.0", "cdd96add954f87397e6f87736159c14b956d7467e86e7f1f66856dab16914694"},
}

// chatList takes one file of the catalogue package. Files that are not named
// here are left out on purpose: subscription endpoints (coding plans, token
// plans, the first-party clients' own), other gateways, and providers that
// weir has no row for. The file of Z.ai describes its coding plan, so Z.ai's
// models stand in hand.go.
type chatList struct{ file, alias string }

var chats = []chatList{
	{"openai", "openai"},
	{"anthropic", "anthropic"},
	{"google", "gemini"},
	{"google-vertex", "vertex"},
	{"amazon-bedrock", "bedrock"},
	{"azure", "azure"},
	{"mistral", "mistral"},
	{"groq", "groq"},
	{"xai", "xai"},
	{"deepseek", "deepseek"},
	{"together", "together"},
	{"fireworks", "fireworks"},
	{"openrouter", "openrouter"},
	{"nvidia", "nvidia"},
	{"cerebras", "cerebras"},
	{"moonshotai", "moonshot"},
	{"minimax", "minimax"},
	{"huggingface", "hf"},
	{"cloudflare-workers-ai", "cf"},
}

// idList takes one declaration of a type file as models of one kind. prefix is
// put before each id where the package leaves it out.
type idList struct{ pkg, name, alias, kind, prefix string }

var ids = []idList{
	{"@ai-sdk/openai", "openaiEmbeddingModelEntries", "openai", "e", ""},
	{"@ai-sdk/openai", "openaiImageModelEntries", "openai", "i", ""},
	{"@ai-sdk/openai", "imageModelAliases", "openai", "i", ""},
	{"@ai-sdk/openai", "openaiSpeechModelEntries", "openai", "t", ""},
	{"@ai-sdk/openai", "openaiTranscriptionModelEntries", "openai", "s", ""},
	{"@ai-sdk/openai", "openaiEmbeddingModelEntries", "azure", "e", ""},
	{"@ai-sdk/openai", "openaiImageModelEntries", "azure", "i", ""},
	{"@ai-sdk/google", "GoogleEmbeddingModelId", "gemini", "e", ""},
	{"@ai-sdk/google", "GoogleImageModelId", "gemini", "i", ""},
	{"@ai-sdk/google", "GoogleSpeechModelId", "gemini", "t", ""},
	{"@ai-sdk/google", "GoogleVideoModelId", "gemini", "v", ""},
	{"@ai-sdk/google-vertex", "vertexAnthropicModels", "vertex", "l", ""},
	{"@ai-sdk/google-vertex", "vertexXaiModels", "vertex", "l", ""},
	{"@ai-sdk/google-vertex", "vertexMaasModels", "vertex", "l", ""},
	{"@ai-sdk/google-vertex", "embeddingModelIds", "vertex", "e", ""},
	{"@ai-sdk/google-vertex", "imageModelIds", "vertex", "i", ""},
	{"@ai-sdk/google-vertex", "speechModelIds", "vertex", "t", ""},
	{"@ai-sdk/google-vertex", "videoModelIds", "vertex", "v", ""},
	{"@ai-sdk/amazon-bedrock", "AmazonBedrockEmbeddingModelId", "bedrock", "e", ""},
	{"@ai-sdk/amazon-bedrock", "AmazonBedrockImageModelId", "bedrock", "i", ""},
	{"@ai-sdk/amazon-bedrock", "AmazonBedrockRerankingModelId", "bedrock", "r", ""},
	{"@ai-sdk/mistral", "mistralEmbeddingModelEntries", "mistral", "e", ""},
	{"@ai-sdk/mistral", "mistralSpeechModelEntries", "mistral", "t", ""},
	{"@ai-sdk/mistral", "mistralTranscriptionModelEntries", "mistral", "s", ""},
	{"@ai-sdk/groq", "groqTranscriptionModelEntries", "groq", "s", ""},
	{"@ai-sdk/xai", "XaiImageModelId", "xai", "i", ""},
	{"@ai-sdk/xai", "XaiVideoModelId", "xai", "v", ""},
	{"@ai-sdk/togetherai", "TogetherAIEmbeddingModelId", "together", "e", ""},
	{"@ai-sdk/togetherai", "TogetherAIImageModelId", "together", "i", ""},
	{"@ai-sdk/togetherai", "TogetherAIRerankingModelId", "together", "r", ""},
	{"@ai-sdk/fireworks", "FireworksEmbeddingModelId", "fireworks", "e", ""},
	{"@ai-sdk/fireworks", "FireworksImageModelId", "fireworks", "i", ""},
	{"@ai-sdk/cohere", "CohereChatModelId", "cohere", "l", ""},
	{"@ai-sdk/cohere", "CohereEmbeddingModelId", "cohere", "e", ""},
	{"@ai-sdk/cohere", "CohereRerankingModelId", "cohere", "r", ""},
	{"voyage-ai-provider", "VoyageEmbeddingModelId", "voyage", "e", ""},
	{"voyage-ai-provider", "VoyageMultimodalEmbeddingModelId", "voyage", "e", ""},
	{"voyage-ai-provider", "VoyageRerankingModelId", "voyage", "r", ""},
	{"jina-ai-provider", "JinaEmbeddingModelId", "jina", "e", ""},
	{"@ai-sdk/perplexity", "PerplexityLanguageModelId", "pplx", "l", ""},
	{"@ai-sdk/perplexity", "PerplexityEmbeddingModelId", "pplx", "e", ""},
	{"@ai-sdk/alibaba", "AlibabaChatModelId", "qwen", "l", ""},
	{"@ai-sdk/alibaba", "AlibabaEmbeddingModelId", "qwen", "e", ""},
	{"@ai-sdk/alibaba", "AlibabaVideoModelId", "qwen", "v", ""},
	{"@ai-sdk/deepinfra", "DeepInfraEmbeddingModelId", "deepinfra", "e", ""},
	{"@ai-sdk/deepinfra", "DeepInfraImageModelId", "deepinfra", "i", ""},
	{"@ai-sdk/elevenlabs", "ElevenLabsSpeechModelId", "el", "t", ""},
	{"@ai-sdk/elevenlabs", "ElevenLabsTranscriptionModelId", "el", "s", ""},
	{"@ai-sdk/deepgram", "DeepgramSpeechModelId", "dg", "t", ""},
	{"@ai-sdk/deepgram", "DeepgramTranscriptionModelId", "dg", "s", ""},
	{"@ai-sdk/assemblyai", "AssemblyAITranscriptionModelId", "aai", "s", ""},
	{"@ai-sdk/black-forest-labs", "BlackForestLabsImageModelId", "bfl", "i", ""},
	{"@ai-sdk/black-forest-labs", "BlackForestLabsVideoModelId", "bfl", "v", ""},
	{"@ai-sdk/fal", "FalImageModelId", "fal", "i", ""},
	{"@ai-sdk/fal", "FalSpeechModelId", "fal", "t", ""},
	{"@ai-sdk/fal", "FalTranscriptionModelId", "fal", "s", "fal-ai/"},
	{"@ai-sdk/fal", "FalVideoModelId", "fal", "v", "fal-ai/"},
	{"@ai-sdk/replicate", "ReplicateImageModelId", "replicate", "i", ""},
	{"@ai-sdk/replicate", "ReplicateVideoModelId", "replicate", "v", ""},
	{"@ai-sdk/luma", "LumaImageModelId", "luma", "i", ""},
}

// aliases orders the sections as pkg/provider orders its rows.
var aliases = []string{
	"openai", "anthropic", "gemini", "vertex", "bedrock", "azure", "mistral", "groq", "xai", "deepseek",
	"together", "fireworks", "openrouter", "cohere", "voyage", "jina", "nvidia", "cerebras", "sambanova",
	"pplx", "zai", "moonshot", "minimax", "qwen", "hf", "cf", "deepinfra", "ollama-cloud", "el", "dg", "aai",
	"cartesia", "inworld", "stability", "bfl", "fal", "runway", "replicate", "luma",
}
