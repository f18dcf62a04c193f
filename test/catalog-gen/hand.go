package main

// hand lists what no package names, from the vendors' own documentation and
// SDKs (providers' notes, November 2026). ids are separated by blanks.
var hand = []struct{ alias, kind, ids string }{
	// https://developers.openai.com/api/docs/models
	{"openai", "w", "gpt-realtime gpt-realtime-2025-08-28 gpt-realtime-1.5 gpt-realtime-2 gpt-realtime-2.1 gpt-realtime-mini gpt-realtime-mini-2025-12-15 gpt-realtime-2.1-mini"},
	{"mistral", "o", "mistral-ocr-latest"},
	{"groq", "t", "canopylabs/orpheus-v1-english canopylabs/orpheus-arabic-saudi"},
	{"together", "s", "openai/whisper-large-v3"},
	{"together", "t", "hexgrad/Kokoro-82M canopylabs/orpheus-3b-0.1-ft cartesia/sonic-2"},
	{"openrouter", "e", "openai/text-embedding-3-small openai/text-embedding-3-large openai/text-embedding-ada-002 google/gemini-embedding-001 mistralai/mistral-embed-2312 mistralai/codestral-embed-2505 qwen/qwen3-embedding-4b qwen/qwen3-embedding-8b baai/bge-m3"},
	{"cohere", "e", "embed-v4.0"},
	{"cohere", "r", "rerank-v4.0-pro rerank-v4.0-fast"},
	{"voyage", "r", "rerank-3 rerank-3-lite"},
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
	// models.dev of 2026-09-30, with their prices
	{"gemini", "i", "gemini-3-pro-image"},
	{"vertex", "i", "gemini-3-pro-image gemini-3.1-flash-image"},
	{"cohere", "l", "command-a-plus-05-2026 command-r-plus-08-2024"},
	{"zai", "l", "glm-5.1"},
	{"qwen", "l", "qwen3.6-flash qwen3.6-plus qwen3.7-flash qwen3.7-plus qwen3.8-flash qwen3.8-max"},
	{"ollama-cloud", "l", "deepseek-v4-pro deepseek-v4.1-flash glm-5.3 glm-5.3-flash kimi-k3"},
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
	{"fal", "v", "fal-ai/luma-dream-machine/ray-2 fal-ai/luma-dream-machine/ray-2-flash"},
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

// prices are those that the packages do not have, as in catalog.Price, by alias and ids.
// They are added to those that a package has, or take their place (addPrices). One that no
// source confirms is left out, and one that depends on what weir does not know of a call,
// such as a shortest time that is billed: the calls count as unpriced.
var prices = []struct{ alias, ids, price string }{
	// https://developers.openai.com/api/docs/pricing, November 2026
	{"openai azure", "text-embedding-3-small", "0.02"},
	{"openai azure", "text-embedding-3-large", "0.13"},
	{"openai azure", "text-embedding-ada-002", "0.1"},
	// Azure's are those of OpenAI: LiteLLM's list of 2026-08-06. The newer ones:
	// https://developers.openai.com/api/docs/models/gpt-image-2.6-sunburst, and the same price for
	// 2.5 and Flare: https://docs.laozhang.ai/en/announcements/gpt-image-2-6-2026-11
	{"openai azure", "gpt-image-1-mini", "2//0.2 imageInput=2.5 imageOutput=8"},
	{"openai azure", "gpt-image-1.5", "5/10/1.25 imageInput=8 imageOutput=32"},
	{"openai azure", "gpt-image-2", "5//1.25 imageInput=8 imageOutput=30"},
	// of global deployments; the package has 10% more, which is that of data zones:
	// https://techcommunity.microsoft.com/blog/azure-ai-foundry-blog/introducing-deepseek-v4-flash-and-v4-pro-in-microsoft-foundry/4515174
	{"azure", "deepseek-v4-pro", "1.74/3.48/0.145"},
	{"openai", "gpt-image-2.5-flare gpt-image-2.5-flare-2026-09-08 gpt-image-2.5-sunburst gpt-image-2.5-sunburst-2026-09-08 gpt-image-2.6-flare gpt-image-2.6-sunburst", "5//1.25 imageInput=8 imageOutput=30 imageCacheRead=2"},
	{"openai", "gpt-4o-transcribe gpt-4o-transcribe-diarize", "2.5/10 audioInput=6"},
	{"openai", "gpt-4o-mini-transcribe gpt-4o-mini-transcribe-2025-03-20 gpt-4o-mini-transcribe-2025-12-15", "1.25/5 audioInput=3"},
	{"openai", "gpt-4o-mini-tts gpt-4o-mini-tts-2025-12-15", "0.6/ audioOutput=12"},
	{"openai", "tts-1 tts-1-1106", "character=15"},
	{"openai", "tts-1-hd tts-1-hd-1106", "character=30"},
	{"openai", "whisper-1", "minute=0.006"},
	{"openai", "gpt-transcribe", "minute=0.0045"}, // @pydantic/genai-prices 0.1.8
	// https://developers.openai.com/api/docs/models/gpt-realtime-2.1, .../gpt-realtime-1.5, .../gpt-realtime-2.1-mini, November 2026
	{"openai", "gpt-realtime gpt-realtime-2025-08-28 gpt-realtime-1.5", "4/16/0.4 audioInput=32 audioOutput=64 audioCacheRead=0.4 imageInput=5 imageCacheRead=0.5"},
	{"openai", "gpt-realtime-2 gpt-realtime-2.1", "4/24/0.4 audioInput=32 audioOutput=64 audioCacheRead=0.4 imageInput=5 imageCacheRead=0.5"},
	{"openai", "gpt-realtime-mini gpt-realtime-mini-2025-12-15 gpt-realtime-2.1-mini", "0.6/2.4/0.06 audioInput=10 audioOutput=20 audioCacheRead=0.3 imageInput=0.8 imageCacheRead=0.08"},
	// https://openai.com/api-priority-processing/, November 2026
	{"openai", "gpt-5.5", "@priority=12.5/75/1.25"},
	{"openai", "gpt-5.4", "@priority=5/30/0.5"},
	{"openai", "gpt-5.4-mini", "@priority=1.5/9/0.15"},
	{"openai", "gpt-5.2", "@priority=3.5/28/0.35"},
	{"openai", "gpt-5.1 gpt-5 gpt-5-codex gpt-5.1-codex", "@priority=2.5/20/0.25"},
	{"openai", "gpt-5-mini", "@priority=0.45/3.6/0.045"},
	{"openai", "gpt-4.1", "@priority=3.5/14/0.875"},
	// https://ai.google.dev/gemini-api/docs/pricing, https://cloud.google.com/vertex-ai/generative-ai/pricing, November 2026
	{"gemini vertex", "gemini-embedding-001", "0.15"},
	// of text; models.dev, @pydantic/genai-prices 0.1.8, LiteLLM
	{"gemini vertex", "gemini-embedding-2 gemini-embedding-2-preview", "0.2"},
	// LiteLLM's model_prices_and_context_window.json, from Google's page
	{"vertex", "meta/llama-4-scout-17b-16e-instruct-maas", "0.25/0.7"},
	{"vertex", "minimax/minimax-m2-maas", "0.3/1.2"},
	// LiteLLM's list of 2026-08-06 and Portkey-AI/models of 2026-08-21, which agree
	{"vertex", "deepseek-ai/deepseek-r1-0528-maas", "1.35/5.4"},
	{"vertex", "qwen/qwen3-next-80b-a3b-instruct-maas qwen/qwen3-next-80b-a3b-thinking-maas", "0.15/1.2"},
	{"bedrock", "cohere.rerank-v3-5:0", "request=0.002"},
	{"qwen", "qwen-coder", "0.3/1.5"},
	{"qwen", "qwq-plus-latest", "0.8/2.4"},
	{"qwen", "qwen3-max-preview", "1.2/6 >32000=2.4/12 >128000=3/15"},
	{"fireworks", "nomic-ai/nomic-embed-text-v1.5", "0.008"},
	// Portkey-AI/models of 2026-08-21, pricing/*.json; LiteLLM has that of bge-base too
	{"together", "BAAI/bge-base-en-v1.5 sentence-transformers/msmarco-bert-base-dot-v5 togethercomputer/m2-bert-80M-2k-retrieval togethercomputer/m2-bert-80M-8k-retrieval togethercomputer/m2-bert-80M-32k-retrieval", "0.008"},
	{"together", "BAAI/bge-large-en-v1.5 WhereIsAI/UAE-Large-V1", "0.016"},
	{"deepinfra", "BAAI/bge-base-en-v1.5 intfloat/e5-base-v2 thenlper/gte-base shibing624/text2vec-base-chinese sentence-transformers/all-MiniLM-L12-v2 sentence-transformers/all-MiniLM-L6-v2 sentence-transformers/all-mpnet-base-v2 sentence-transformers/clip-ViT-B-32 sentence-transformers/clip-ViT-B-32-multilingual-v1 sentence-transformers/multi-qa-mpnet-base-dot-v1 sentence-transformers/paraphrase-MiniLM-L6-v2", "0.005"},
	{"deepinfra", "BAAI/bge-large-en-v1.5 BAAI/bge-m3 intfloat/e5-large-v2 thenlper/gte-large", "0.01"},
	{"openrouter", "openai/text-embedding-3-large", "0.13"},
	{"openrouter", "google/gemini-embedding-001", "0.15"},
	{"openrouter", "qwen/qwen3-embedding-4b", "0.02"},
	{"openrouter", "qwen/qwen3-embedding-8b baai/bge-m3", "0.01"},
	// https://docs.z.ai/guides/overview/pricing: free of charge
	{"zai", "glm-4.7-flash", "0/0"},
	{"gemini vertex", "gemini-2.5-flash gemini-3-flash-preview", "audioInput=1"},
	{"gemini vertex", "gemini-2.5-flash-lite", "audioInput=0.3"},
	{"gemini vertex", "gemini-3.1-flash-lite", "audioInput=0.5"},
	{"gemini vertex", "gemini-2.5-flash-image", "0.3/2.5 imageOutput=30"},
	{"gemini vertex", "gemini-3-pro-image gemini-3-pro-image-preview", "2/12 imageOutput=120"},
	{"gemini vertex", "gemini-3.1-flash-image gemini-3.1-flash-image-preview", "0.5/3 imageOutput=60"},
	// models.dev, @pydantic/genai-prices 0.1.8; all output is audio
	{"gemini vertex", "gemini-2.5-flash-preview-tts gemini-2.5-flash-tts gemini-2.5-flash-lite-preview-tts", "0.5/10 audioOutput=10"},
	{"gemini vertex", "gemini-2.5-pro-preview-tts gemini-2.5-pro-tts gemini-3.1-flash-tts-preview", "1/20 audioOutput=20"},
	// https://github.com/BerriAI/litellm/discussions/42776, until the end of 2026, and .../44983
	{"gemini", "gemini-3.8-flash-tts", "0.5/9 audioOutput=9"},
	{"gemini", "gemini-3.8-flash-lite-tts", "0.5/6 audioOutput=6"},
	{"gemini vertex", "gemini-nano-banana-2.1", "1.5/7.5 imageOutput=30"},
	// Google's page as of 2026-09-20, and LiteLLM's list of 2026-08-06 for Lite. The lists disagree
	// on the fast ones; those of Vertex cost less without sound, which a call may ask for.
	{"gemini", "veo-3.1-generate veo-3.1-generate-preview", "second@4k=0.6 second=0.4"},
	{"gemini", "veo-3.1-lite-generate-preview", "second@1080p=0.08 second=0.05"},
	{"vertex", "chirp-3-hd", "character=30"},                                                   // Portkey-AI/models of 2026-08-21
	{"gemini vertex", "gemini-3.5-flash", "audioInput=1.5"},                                    // models.dev
	{"gemini vertex", "gemini-3.6-flash gemini-3.7-flash gemini-3.8-flash", "audioInput=0.75"}, // models.dev
	// models.dev: the names of the latest models stand for gemini-3.8-flash and gemini-3.5-flash-lite.
	{"gemini", "gemini-flash-latest", "0.75/3.75/0.075 audioInput=0.75"},
	{"gemini", "gemini-flash-lite-latest", "0.3/2.5/0.03"},
	{"vertex", "gemini-2.5-pro", ">200000=2.5/15/0.25"},
	{"vertex", "gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools", ">200000=4/18/0.4"},
	// https://platform.claude.com/docs/en/about-claude/pricing, November 2026
	// @pydantic/genai-prices 0.1.8; Anthropic itself refuses such prompts since 2026-04-30
	// (https://platform.claude.com/docs/en/release-notes)
	{"vertex", "claude-sonnet-4-5@20250929", ">200000=6/22.5/0.6/7.5/12"},
	// https://cohere.com/pricing: a search has one query and up to 100 documents
	{"cohere", "embed-v4.0", "0.12"},
	// LiteLLM's list of 2026-08-06
	{"cohere", "embed-english-light-v3.0", "0.1"},
	{"cohere bedrock", "embed-english-v3.0 embed-multilingual-v3.0 cohere.embed-english-v3 cohere.embed-multilingual-v3", "0.1"},
	{"cohere", "rerank-v3.5 rerank-english-v3.0 rerank-multilingual-v3.0", "request=0.002"},
	{"bedrock", "amazon.titan-embed-text-v2:0", "0.02"},
	// LiteLLM's model_prices_and_context_window.json; a query has up to 100 documents
	{"bedrock", "amazon.titan-embed-text-v1", "0.1"},
	{"bedrock", "amazon.rerank-v1:0", "request=0.001"},
	// https://openrouter.ai/cohere/rerank-4-pro
	{"cohere", "rerank-v4.0-pro", "request=0.0025"},
	// https://artificial-intelligence-wiki.com/ai-development/rag-systems/cohere-rerank-guide
	{"cohere", "rerank-v4.0-fast", "request=0.002"},
	{"mistral", "mistral-embed mistral-embed-2312", "0.1"},
	// https://vercel.com/ai-gateway/models/voxtral-mini-transcribe-3, .../voxtral-small-transcribe-3: by the
	// second, of Mistral, at its price; https://micdrop.dev/blog/mistral-voice-agent-voxtral-3
	{"mistral", "voxtral-mini-transcribe-3 voxtral-mini-transcribe-3-0 voxtral-mini-transcribe-latest", "minute=0.0035"},
	{"mistral", "voxtral-small-transcribe-3 voxtral-small-transcribe-3-0 voxtral-small-transcribe-latest", "minute=0.004"},
	{"mistral", "voxtral-mini-tts-3 voxtral-mini-tts-3-0 voxtral-mini-tts-latest", "character=13"},
	{"mistral", "voxtral-mini-2602 voxtral-mini-latest", "minute=0.003"}, // @pydantic/genai-prices 0.1.8
	// https://openrouter.ai/mistralai/codestral-embed-2505/api: of Mistral, at its price
	{"mistral openrouter", "codestral-embed codestral-embed-2505 mistralai/codestral-embed-2505", "0.15"},
	// https://openrouter.ai/openai/text-embedding-3-small, .../openai/text-embedding-ada-002/api, .../mistralai/mistral-embed-2312/api
	{"openrouter", "openai/text-embedding-3-small", "0.02"},
	{"openrouter", "openai/text-embedding-ada-002 mistralai/mistral-embed-2312", "0.1"},
	// models.dev: the package has prices of its own of March 2026 for these two
	{"openrouter", "moonshotai/kimi-k2.5", "0.45/2.25/0.07"},
	{"openrouter", "z-ai/glm-5", "0.6/1.92/0.12"},
	// https://cloud.sambanova.ai/plans/pricing, as of 2026-10-07; https://www.lava.so/docs/gateway/providers/sambanova
	{"sambanova", "DeepSeek-V3.1", "3/4.5"},
	{"sambanova", "Meta-Llama-3.3-70B-Instruct", "0.6/1.2"},
	{"sambanova", "gpt-oss-120b", "0.22/0.59"},
	// https://www.alibabacloud.com/help/en/model-studio/embedding-interfaces-compatible-with-openai, Singapore
	{"qwen", "text-embedding-v3 text-embedding-v4", "0.07"},
	// https://docs.perplexity.ai/getting-started/pricing, https://openrouter.ai/perplexity/pplx-embed-v1-0.6B
	{"pplx", "pplx-embed-v1-0.6b", "0.004"},
	{"pplx", "pplx-embed-v1-4b", "0.03"},
	// https://deepinfra.com/intfloat/multilingual-e5-large/api
	{"deepinfra", "intfloat/multilingual-e5-large", "0.01"},
	// https://docs.voyageai.com/docs/pricing, November 2026
	{"voyage", "voyage-4-large", "0.12"},
	{"voyage", "voyage-4 voyage-3 voyage-3.5", "0.06"},
	{"voyage", "voyage-4-lite voyage-3-lite voyage-3.5-lite", "0.02"},
	{"voyage", "voyage-3-large voyage-code-3", "0.18"},
	{"voyage", "voyage-2", "0.1"},
	// https://www.getmaxim.ai/bifrost/model-library/provider/voyage, https://vercel.com/ai-gateway/models/rerank-2.5
	// https://www.getmaxim.ai/bifrost/llm-cost-calculator/provider/voyage/model/rerank-3, .../rerank-3-lite
	{"voyage", "rerank-3 rerank-2.5 rerank-2", "0.05"},
	{"voyage", "rerank-3-lite rerank-2.5-lite rerank-2-lite", "0.02"},
	{"voyage", "voyage-code-2 voyage-finance-2 voyage-large-2 voyage-large-2-instruct voyage-law-2 voyage-multilingual-2", "0.12"},
	// https://bfl.ai/pricing, by LiteLLM's list of 2026-08-06. FLUX.2 costs by megapixels.
	{"bfl", "flux-pro-1.1 flux-kontext-pro", "image=0.04"},
	{"bfl", "flux-pro-1.0-fill", "image=0.05"},
	{"bfl", "flux-pro-1.1-ultra", "image=0.06"},
	{"bfl", "flux-kontext-max", "image=0.08"},
	// LiteLLM's list of 2026-08-06 and Portkey-AI/models of 2026-08-21
	{"stability", "ultra", "image=0.08"},
	{"stability", "core", "image=0.03"},
	{"stability", "sd3.5-large", "image=0.065"},
	{"stability", "sd3.5-large-turbo", "image=0.04"},
	{"stability", "sd3.5-medium", "image=0.035"},
	{"fal", "fal-ai/flux-pro/v1.1-ultra", "image=0.06"},
	// https://deepgram.com/pricing, by LiteLLM's list of 2026-08-06 (recorded audio) and
	// Portkey-AI/models of 2026-08-21 (speech). Nova-3 costs by the language that a call asks for.
	{"dg", "base base-conversationalai base-finance base-general base-meeting base-phonecall base-video base-voicemail", "minute=0.0125"},
	{"dg", "enhanced enhanced-finance enhanced-general enhanced-meeting enhanced-phonecall", "minute=0.0145"},
	{"dg", "nova nova-general nova-phonecall nova-2 nova-2-atc nova-2-automotive nova-2-conversationalai nova-2-drivethru nova-2-finance nova-2-general nova-2-meeting nova-2-phonecall nova-2-video nova-2-voicemail", "minute=0.0043"},
	{"dg", "aura aura-asteria-en", "character=15"},
	{"dg", "aura-2 aura-2-andromeda-en aura-2-thalia-en", "character=30"},
	// https://docs.dev.runwayml.com/guides/pricing/, by LiteLLM's list of 2026-08-06
	{"runway", "gen4_turbo", "second=0.05"},
	{"runway", "gen4_image_turbo", "image=0.02"},
	// https://developers.cloudflare.com/workers-ai/platform/pricing/, November 2026
	{"cf", "@cf/openai/whisper @cf/openai/whisper-large-v3-turbo", "minute=0.0005"},
	{"cf", "@cf/deepgram/nova-3", "minute=0.0052"},
	{"cf", "@cf/deepgram/aura-1", "character=15"},
	// the same page and @pydantic/genai-prices 0.1.8
	{"cf", "@cf/baai/bge-small-en-v1.5", "0.02"},
	{"cf", "@cf/baai/bge-base-en-v1.5", "0.067"},
	{"cf", "@cf/baai/bge-large-en-v1.5", "0.204"},
	{"cf", "@cf/baai/bge-m3 @cf/qwen/qwen3-embedding-0.6b", "0.012"},
	// https://console.groq.com/docs/flex-processing: the price of on-demand calls
	{"groq", "*", "@flex"},
}
