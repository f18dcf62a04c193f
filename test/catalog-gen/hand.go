package main

// hand lists what no package names, from the vendors' own documentation and
// SDKs (providers' notes, November 2026). ids are separated by blanks.
var hand = []struct{ alias, kind, ids string }{
	{"mistral", "o", "mistral-ocr-latest"},
	{"groq", "t", "canopylabs/orpheus-v1-english canopylabs/orpheus-arabic-saudi"},
	{"together", "s", "openai/whisper-large-v3"},
	{"together", "t", "hexgrad/Kokoro-82M canopylabs/orpheus-3b-0.1-ft cartesia/sonic-2"},
	{"openrouter", "e", "openai/text-embedding-3-small openai/text-embedding-3-large openai/text-embedding-ada-002 google/gemini-embedding-001 mistralai/mistral-embed-2312 mistralai/codestral-embed-2505 qwen/qwen3-embedding-4b qwen/qwen3-embedding-8b baai/bge-m3"},
	{"cohere", "e", "embed-v4.0"},
	{"cohere", "r", "rerank-v4.0-pro rerank-v4.0-fast"},
	{"jina", "e", "jina-embeddings-v4"},
	{"jina", "r", "jina-reranker-v3 jina-reranker-m0 jina-reranker-v2-base-multilingual"},
	{"nvidia", "e", "nvidia/llama-3.2-nv-embedqa-1b-v2 nvidia/nv-embedqa-e5-v5 nvidia/nv-embed-v1 nvidia/nv-embedcode-7b-v1 baai/bge-m3"},
	{"sambanova", "l", "gpt-oss-120b DeepSeek-V3.1 Meta-Llama-3.3-70B-Instruct"},
	// The general API. Prices and limits of the packages describe the coding
	// plan and are not taken.
	{"zai", "l", "glm-5.3 glm-5.3-flash glm-5.2 glm-5-turbo glm-5 glm-4.7 glm-4.7-flash glm-4.6 glm-4.6v glm-4.5 glm-4.5-air glm-4.5v"},
	{"zai", "e", "embedding-3 embedding-2"},
	{"zai", "i", "glm-image cogview-4-250304"},
	{"zai", "s", "glm-asr-2512"},
	{"zai", "v", "cogvideox-3"},
	{"minimax", "i", "image-01"},
	{"minimax", "t", "speech-2.8-hd speech-2.8-turbo speech-2.6-hd speech-2.6-turbo speech-02-hd speech-02-turbo"},
	{"minimax", "v", "MiniMax-H3 MiniMax-H3-Max MiniMax-Hailuo-2.3 MiniMax-Hailuo-2.3-Fast MiniMax-Hailuo-02"},
	{"minimax", "m", "music-2.6 music-2.5"},
	{"qwen", "i", "qwen-image qwen-image-plus"},
	{"qwen", "t", "qwen3-tts-flash"},
	{"hf", "e", "intfloat/multilingual-e5-large sentence-transformers/all-MiniLM-L6-v2 BAAI/bge-m3"},
	{"hf", "i", "black-forest-labs/FLUX.1-dev black-forest-labs/FLUX.1-schnell stabilityai/stable-diffusion-xl-base-1.0"},
	{"cf", "e", "@cf/baai/bge-m3 @cf/baai/bge-small-en-v1.5 @cf/baai/bge-base-en-v1.5 @cf/baai/bge-large-en-v1.5 @cf/google/embeddinggemma-300m @cf/qwen/qwen3-embedding-0.6b"},
	{"cf", "i", "@cf/black-forest-labs/flux-1-schnell @cf/leonardo/lucid-origin @cf/leonardo/phoenix-1.0"},
	{"cf", "s", "@cf/openai/whisper @cf/openai/whisper-large-v3-turbo @cf/deepgram/nova-3"},
	{"cf", "t", "@cf/deepgram/aura-1 @cf/myshell-ai/melotts"},
	{"cf", "o", "@cf/llava-hf/llava-1.5-7b-hf"},
	{"deepinfra", "l", "deepseek-ai/DeepSeek-V3.1 meta-llama/Llama-3.3-70B-Instruct meta-llama/Llama-3.3-70B-Instruct-Turbo meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8 meta-llama/Llama-4-Scout-17B-16E-Instruct openai/gpt-oss-120b openai/gpt-oss-20b"},
	{"deepinfra", "s", "openai/whisper-large-v3 openai/whisper-large-v3-turbo"},
	{"deepinfra", "t", "hexgrad/Kokoro-82M"},
	{"ollama-cloud", "l", "gpt-oss:20b gpt-oss:120b"},
	{"el", "m", "music_v1"},
	{"dg", "t", "aura-2-thalia-en aura-2-andromeda-en aura-asteria-en"},
	{"cartesia", "t", "sonic-3.5 sonic-3 sonic-latest"},
	{"cartesia", "s", "ink-whisper"},
	{"inworld", "t", "inworld-tts-1 inworld-tts-1-max inworld-tts-1.5-mini inworld-tts-1.5-max"},
	{"stability", "i", "ultra core sd3.5-large sd3.5-large-turbo sd3.5-medium"},
	{"stability", "m", "stable-audio-2"},
	{"bfl", "i", "flux-2-pro flux-2-flex flux-2-max"},
	// npm @runwayml/sdk@4.20.1, resources/
	{"runway", "v", "gen4.5 gen4_turbo aleph2 veo3.1 veo3.1_fast hailuo3 happyhorse_1_0 seedance2 seedance2_fast seedance2_mini seedance2_5 gemini_omni_flash gemini_omni_flash_1.1 grok_imagine_1_5 wan3 wan3_prime h3_max"},
	{"runway", "i", "gen4_image gen4_image_turbo gpt_image_2 gpt_image_2_5_flare gpt_image_2_5_sunburst gemini_2.5_flash gemini_image3_pro gemini_image3.1_flash muse_image seedream5_pro seedream5_lite grok_imagine_image_2"},
	{"runway", "t", "eleven_v3 eleven_multilingual_v2 seed_audio"},
	{"luma", "v", "ray-2 ray-flash-2"},
}

// dimensions are the default lengths of the vectors, as the vendors state them.
var dimensions = map[string]int{
	"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536,
	"openai/text-embedding-3-large": 3072, "openai/text-embedding-3-small": 1536, "openai/text-embedding-ada-002": 1536,
	"gemini-embedding-001": 3072, "google/gemini-embedding-001": 3072, "text-embedding-005": 768, "text-multilingual-embedding-002": 768,
	"mistral-embed": 1024, "mistral-embed-2312": 1024, "mistralai/mistral-embed-2312": 1024,
	"codestral-embed": 1536, "codestral-embed-2505": 1536, "mistralai/codestral-embed-2505": 1536,
	"amazon.titan-embed-text-v1": 1536, "amazon.titan-embed-text-v2:0": 1024,
	"cohere.embed-english-v3": 1024, "cohere.embed-multilingual-v3": 1024,
	"embed-v4.0": 1536, "embed-english-v3.0": 1024, "embed-multilingual-v3.0": 1024,
	"embed-english-light-v3.0": 384, "embed-multilingual-light-v3.0": 384,
	"voyage-4-large": 1024, "voyage-4": 1024, "voyage-4-lite": 1024, "voyage-3-large": 1024, "voyage-3.5": 1024,
	"voyage-3.5-lite": 1024, "voyage-code-3": 1024, "voyage-finance-2": 1024, "voyage-law-2": 1024, "voyage-multimodal-3": 1024,
	"jina-embeddings-v4": 2048, "jina-embeddings-v3": 1024, "jina-embeddings-v2-base-en": 768, "jina-embeddings-v2-base-code": 768,
	"jina-clip-v2": 1024, "jina-clip-v1": 768,
	"nvidia/nv-embedqa-e5-v5": 1024, "nvidia/llama-3.2-nv-embedqa-1b-v2": 2048, "nvidia/nv-embed-v1": 4096,
	"@cf/baai/bge-m3": 1024, "@cf/baai/bge-small-en-v1.5": 384, "@cf/baai/bge-base-en-v1.5": 768, "@cf/baai/bge-large-en-v1.5": 1024,
	"baai/bge-m3": 1024, "BAAI/bge-m3": 1024, "BAAI/bge-base-en-v1.5": 768, "BAAI/bge-large-en-v1.5": 1024,
	"intfloat/e5-base-v2": 768, "intfloat/e5-large-v2": 1024, "intfloat/multilingual-e5-large": 1024,
	"thenlper/gte-base": 768, "thenlper/gte-large": 1024, "sentence-transformers/all-MiniLM-L6-v2": 384,
	"sentence-transformers/all-MiniLM-L12-v2": 384, "sentence-transformers/all-mpnet-base-v2": 768,
	"nomic-ai/nomic-embed-text-v1.5": 768, "text-embedding-v3": 1024, "text-embedding-v4": 1024, "embedding-3": 2048, "embedding-2": 1024,
}

// embeddingPrices are USD per million input tokens, as the vendors state them
// (November 2026). A model that is missing here counts as unpriced.
var embeddingPrices = map[string]map[string]string{
	"openai":     {"text-embedding-3-small": "0.02", "text-embedding-3-large": "0.13", "text-embedding-ada-002": "0.1"},
	"azure":      {"text-embedding-3-small": "0.02", "text-embedding-3-large": "0.13", "text-embedding-ada-002": "0.1"},
	"openrouter": {"openai/text-embedding-3-small": "0.02", "openai/text-embedding-3-large": "0.13", "openai/text-embedding-ada-002": "0.1", "google/gemini-embedding-001": "0.15"},
	"gemini":     {"gemini-embedding-001": "0.15"},
	"vertex":     {"gemini-embedding-001": "0.15"},
	"cohere":     {"embed-english-v3.0": "0.1", "embed-multilingual-v3.0": "0.1"},
	"bedrock":    {"amazon.titan-embed-text-v2:0": "0.02", "cohere.embed-english-v3": "0.1", "cohere.embed-multilingual-v3": "0.1"},
	"mistral":    {"mistral-embed": "0.1", "mistral-embed-2312": "0.1"},
	"voyage":     {"voyage-4-large": "0.12", "voyage-4": "0.06", "voyage-4-lite": "0.02", "voyage-3-large": "0.18", "voyage-3.5": "0.06", "voyage-3.5-lite": "0.02", "voyage-code-3": "0.18"},
}
