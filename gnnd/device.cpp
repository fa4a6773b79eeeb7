#include "gnnd/device.h"

#include <cstring>

#ifdef GNND_WITH_CUDA
#include "gnnd/cuda/backend.h"
#endif

namespace gnnd {

int device_count([[maybe_unused]] std::string* why) {
#ifdef GNND_WITH_CUDA
    return cuda::device_count(why);
#else
    if (why != nullptr) *why = "this build of gnnd has no CUDA backend";
    return 0;
#endif
}

bool device_usable([[maybe_unused]] int index, std::string& why) {
#ifdef GNND_WITH_CUDA
    return cuda::usable(index, why);
#else
    return device_count(&why) > 0;
#endif
}

int device_of([[maybe_unused]] const void* pointer) {
#ifdef GNND_WITH_CUDA
    return cuda::device_of(pointer);
#else
    return -1;
#endif
}

void copy_to_host(const VectorView& vectors, void* out) {
#ifdef GNND_WITH_CUDA
    if (cuda::device_of(vectors.data) >= 0) return cuda::copy_to_host(vectors, out);
#endif
    const auto bytes = std::size_t(vectors.d) * size_of(vectors.dtype);
    for (std::int64_t i = 0; i < vectors.n; ++i)
        std::memcpy(static_cast<std::byte*>(out) + std::size_t(i) * bytes, vectors.row(i), bytes);
}

}  // namespace gnnd
