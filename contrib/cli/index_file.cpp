// SPDX-License-Identifier: MIT
#include "index_file.h"

#include <faiss/impl/FaissException.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "any_graph.h"
#include "faiss_ext/check_index.h"
#include "faiss_ext/detail/checked_reader.h"
#include "gnnd/error.h"
#include "gnnd/io/detail/atomic_file.h"
#include "messages.h"

namespace cli {

namespace {

struct Trailer {
    std::array<char, 8> magic{'g', 'n', 'n', 'd', 'X', 'X', 'H', '3'};
    std::uint64_t bytes = 0, checksum = 0;
};

class Checksum {
  public:
    Checksum() { XXH3_64bits_reset(&state_); }
    void add(const void* data, std::size_t bytes) { XXH3_64bits_update(&state_, data, bytes); }
    std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

  private:
    XXH3_state_t state_;
};

/// FAISS's own file writer would leave half an index under the final name when the disk is full.
struct AtomicWriter : faiss::IOWriter {
    explicit AtomicWriter(const std::string& path) : file(path) { name = path; }
    size_t operator()(const void* data, size_t size, size_t count) override {
        file.write(data, size * count);
        checksum.add(data, size * count);
        bytes += size * count;
        return count;
    }
    gnnd::io::detail::AtomicFile file;
    Checksum checksum;
    std::uint64_t bytes = 0;
};

bool is_graph(const std::string& path) {
    try {
        const AnyGraph graph(path);
        return true;
    } catch (const gnnd::IoError&) {
        return false;
    }
}

/// Nothing is said of files that end with no trailer, those of FAISS itself.
void verify_checksum(const std::string& path) {
    const std::uint64_t size = std::filesystem::file_size(path);
    if (size < sizeof(Trailer)) return;
    std::ifstream file(path, std::ios::binary);
    Trailer trailer;
    file.seekg(-std::streamoff(sizeof(Trailer)), std::ios::end);
    file.read(reinterpret_cast<char*>(&trailer), sizeof(Trailer));
    if (trailer.magic != Trailer{}.magic) return;
    const std::string damaged = path + ": is damaged: ";
    std::uint64_t left = size - sizeof(Trailer);
    if (trailer.bytes != left)
        throw gnnd::IoError(damaged + "holds " + std::to_string(left) + " bytes, not " + std::to_string(trailer.bytes));
    file.seekg(0);
    Checksum checksum;
    std::vector<char> buffer(std::size_t(1) << 20);
    while (left > 0) {
        const std::uint64_t now = std::min<std::uint64_t>(left, buffer.size());
        if (!file.read(buffer.data(), std::streamsize(now))) throw gnnd::IoError(path + ": cannot read");
        checksum.add(buffer.data(), now);
        left -= now;
    }
    if (checksum.value() != trailer.checksum) throw gnnd::IoError(damaged + "its checksum is another");
}

/// \throws gnnd::IoError that names the file
void require_whole(const std::string& path, const faiss::Index& index) {
    try {
        faiss_ext::check_index(index);
    } catch (const faiss::FaissException& error) {
        std::string what = error.what();
        constexpr std::string_view kScope = "faiss::";
        if (what.starts_with(kScope)) what.erase(0, kScope.size());
        throw gnnd::IoError(path + ": " + what);
    }
}

}  // namespace

void write_index_file(const std::string& path, const faiss::Index& index) {
    AtomicWriter writer(path);
    faiss::write_index(&index, &writer);
    Trailer trailer;
    trailer.bytes = writer.bytes;
    trailer.checksum = writer.checksum.value();
    writer.file.write(&trailer, sizeof(trailer));
    writer.file.commit();
}

std::unique_ptr<faiss::Index> read_index_file(const std::string& path) {
    const std::string made_of_it = path + " is a graph; `gnnd index` makes an index of it";
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::is_directory(status) && is_graph(path)) throw gnnd::InvalidArgument(made_of_it);
    // Of a FIFO no end is ever seen.
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        throw gnnd::IoError(path + ": is no regular file");
    if (std::filesystem::exists(status)) verify_checksum(path);
    try {
        faiss::FileIOReader file(path.c_str());
        faiss_ext::detail::CheckedReader reader(file);
        std::unique_ptr<faiss::Index> index(faiss::read_index(&reader));
        require_whole(path, *index);
        return index;
    } catch (const faiss::FaissException& error) {
        if (is_graph(path)) throw gnnd::InvalidArgument(made_of_it);
        const std::string what = message_of(error);
        throw gnnd::IoError(what.find(path) == std::string::npos ? path + ": " + what : what);
    }
}

}  // namespace cli
